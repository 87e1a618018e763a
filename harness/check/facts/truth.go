package facts

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Truth is what the rollups had to say in a span of time: any of Allowed. While nothing is required (KMS inactive,
// nothing known yet) Open is set.
type Truth struct {
	span.Span
	Open    bool
	Allowed []Rollups
}

// Allows reports whether one of the allowed rollups is as ok demands.
func (t Truth) Allows(ok func(Rollups) bool) bool { return slices.ContainsFunc(t.Allowed, ok) }

func (t Truth) equal(o Truth) bool {
	return t.Open == o.Open && slices.EqualFunc(t.Allowed, o.Allowed, Rollups.equal)
}

// readTruths reads the judged time, cut at every instant at which what the rollups must say may change: a report
// changed, the expectation changed, or the clock passed a threshold.
func (v *Facts) readTruths() {
	add := func(t Truth) {
		if n := len(v.Truths); n > 0 && v.Truths[n-1].To.Equal(t.From) && v.Truths[n-1].equal(t) {
			v.Truths[n-1].To = t.To
			return
		}
		v.Truths = append(v.Truths, t)
	}
	awaiting := newAwaiting(v)
	for _, epoch := range pieces(v.epochs()) {
		x, known := v.ExpectedAt(epoch.From)
		s := v.crAt(epoch.From)
		if !known || !x.Active || s == nil || len(x.Nodes) == 0 {
			add(Truth{Span: epoch, Open: true})
			continue
		}
		graces := awaiting.graces(epoch.From, x, s.Reports)
		for _, part := range v.thresholds(epoch, s.Reports, graces) {
			middle := part.From.Add(part.Length() / 2)
			allowed := v.allowedAt(middle, x, s.Reports, graces)
			if part.From.Before(x.sure) {
				allowed = v.orAsBefore(x, middle, allowed, awaiting, s.Reports)
			}
			add(Truth{Span: part, Allowed: allowed})
		}
		v.overtake(epoch.To, x, s.Reports, graces)
	}
}

// orAsBefore adds to what x allows what the expectation before it does, while it is not sure that x holds already.
func (v *Facts) orAsBefore(x Expectation, now time.Time, allowed []Rollups, a *awaiting, reports map[string]*Report) []Rollups {
	before, known := v.ExpectedAt(x.From.Add(-1))
	if !known || !before.Active || len(before.Nodes) == 0 {
		return allowed
	}
	for _, r := range v.allowedAt(now, before, reports, a.graces(now, before, reports)) {
		allowed = addRollups(allowed, r)
	}
	return allowed
}

// overtake adds what an aggregator says that read these reports before they changed at to, and its clock within its latency after: an entry may be
// stale by then, or a grace over.
func (v *Facts) overtake(to time.Time, x Expectation, reports map[string]*Report, graces map[string]grace) {
	until := to.Add(v.Latency())
	for _, part := range v.thresholds(span.New(to, until), reports, graces) {
		allowed := v.allowedAt(part.From.Add(part.Length()/2), x, reports, graces)
		if now := v.Truths[len(v.Truths)-1].Allowed; !slices.EqualFunc(now, allowed, Rollups.equal) {
			v.Overtaken = append(v.Overtaken, Truth{Span: span.New(part.From, until).Grow(v.Tolerance(), 0), Allowed: allowed})
		}
	}
}

// epochs are the instants at which something visible changed.
func (v *Facts) epochs() []time.Time {
	cuts := []time.Time{v.Period.From, v.Period.To}
	for _, states := range v.Reports {
		for _, s := range states {
			cuts = append(cuts, s.From)
		}
	}
	if len(v.CRs) > 0 {
		cuts = append(cuts, v.CRs[0].At)
	}
	for _, x := range v.Expectations {
		cuts = append(cuts, x.From, span.Earliest(x.sure, v.Period.To))
	}
	for _, p := range v.OfRole(history.RoleAggregator) {
		for _, s := range v.Processes[p] {
			cuts = append(cuts, s.From)
		}
	}
	return cuts
}

// pieces cuts the time from the first to the last of some instants at each of them.
func pieces(cuts []time.Time) (out []span.Span) {
	slices.SortFunc(cuts, time.Time.Compare)
	for i := range cuts[1:] {
		if s := span.New(cuts[i], cuts[i+1]); !s.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// thresholds cuts an epoch where an entry becomes stale, stops being skewed, or a grace may or must end.
func (v *Facts) thresholds(epoch span.Span, reports map[string]*Report, graces map[string]grace) []span.Span {
	cuts := []time.Time{epoch.From, epoch.To}
	for _, r := range reports {
		for _, e := range r.Entries {
			cuts = append(cuts, e.Checked.Add(contract.StaleAfter(v.Interval())), e.Checked.Add(-v.Interval()))
		}
	}
	for _, g := range graces {
		cuts = append(cuts, g.mayEnd, g.mustEnd)
	}
	return pieces(slices.DeleteFunc(cuts, func(t time.Time) bool { return t.Before(epoch.From) || t.After(epoch.To) }))
}

// allowedAt is the table under every reading that makes a difference now.
func (v *Facts) allowedAt(now time.Time, x Expectation, reports map[string]*Report, graces map[string]grace) []Rollups {
	s := scene{now: now, interval: v.Interval(), Expectation: x, reports: reports, overdue: func(n string) bool { return now.After(graces[n].mustEnd) }}
	early := s
	early.overdue = func(n string) bool { return now.After(graces[n].mayEnd) }
	strangers, unsound := false, false
	for n, r := range reports {
		strangers = strangers || !s.expects(n)
		unsound = unsound || !s.sound(r)
	}
	var out []Rollups
	for _, how := range readings(strangers, unsound) {
		out = addRollups(addRollups(out, s.table(how)), early.table(how))
	}
	return out
}

func addRollups(list []Rollups, r Rollups) []Rollups {
	if slices.ContainsFunc(list, r.equal) {
		return list
	}
	return append(list, r)
}

// readings are all that differ in what makes a difference now.
func readings(strangers, unsound bool) (out []reading) {
	for n := range 8 {
		how := reading{strangers: n&1 != 0, staleKeys: n&2 != 0, perReport: n&4 != 0}
		if (strangers || !how.strangers) && (unsound || !how.staleKeys && !how.perReport) {
			out = append(out, how)
		}
	}
	return out
}

// Fresh reports whether an aggregator believes at an instant what was checked at another.
func (v *Facts) Fresh(now, checked time.Time) bool {
	return scene{now: now, interval: v.Interval()}.fresh(checked)
}

// Unexplained is the part of a standing value (s, as far as it is judged) at whose instants no truth of the last A
// plus tolerance accepts it.
func (v *Facts) Unexplained(s span.Span, judged span.Set, accepts func(Rollups) bool) span.Set {
	explained := span.Where(v.TruthsNear(s), func(t Truth) bool { return t.Open || t.Allows(accepts) })
	return judged.Clip(s).Intersect(explained.Complement(s))
}

// TruthsNear are the truths that may explain what stands in s. Their spans are when they may be said.
func (v *Facts) TruthsNear(s span.Span) []Truth {
	var out []Truth
	i := sort.Search(len(v.Truths), func(i int) bool { return v.Truths[i].To.Add(v.Latency()).After(s.From) })
	for ; i < len(v.Truths) && v.Truths[i].From.Add(-v.Tolerance()).Before(s.To); i++ {
		t := v.Truths[i]
		t.Span = t.Grow(v.Tolerance(), v.Latency())
		out = append(out, t)
	}
	i = sort.Search(len(v.Overtaken), func(i int) bool { return v.Overtaken[i].To.After(s.From) })
	for ; i < len(v.Overtaken) && v.Overtaken[i].To.Add(-v.Latency()).Before(s.To); i++ {
		if t := v.Overtaken[i]; t.From.Before(s.To) {
			out = append(out, t)
		}
	}
	return out
}
