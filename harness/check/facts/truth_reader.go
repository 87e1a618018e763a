package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// truthReader applies the table to what an aggregator could see. It cuts the run at each instant at which the result may
// change, so that one evaluation in the middle of a part is right for all of it.
type truthReader struct {
	period       span.Span
	bounds       Bounds
	expectations Expectations
	aggregators  []ProcessState
	cr           *CR
	reports      Reports

	restarts []time.Time // an aggregator started, and forgot what it had seen
	blank    []time.Time // … while its rollups did not stand on the CR
	truths   *Truths
}

// visible is what an aggregator could see for a while.
type visible struct {
	Expectation
	reports map[string]*Report
	graces  map[string]grace
}

// read reads the judged time, cut at every instant at which what the rollups must say may change: a report
// changed, the expectation changed, or the clock passed a threshold.
func (r *truthReader) read() *Truths {
	r.truths = &Truths{bounds: r.bounds}
	r.readRestarts()
	for _, epoch := range pieces(r.epochs()) {
		x := r.expectations.At(epoch.From)
		s, seen := span.Last(r.cr.Snapshots, epoch.From)
		if !seen || !x.Reports() {
			r.truths.add(Truth{Span: epoch, Open: true})
			continue
		}
		reports := s.Reports()
		now := r.visible(epoch.From, x, reports)
		for _, part := range r.thresholds(epoch, now) {
			middle := part.From.Add(part.Length() / 2)
			allowed := r.allowedAt(middle, now)
			if before := r.expectations.At(x.From.Add(-1)); part.From.Before(x.sure) && before.Reports() { // x may not hold yet
				for _, other := range r.allowedAt(middle, r.visible(middle, before, reports)) {
					allowed = addRollups(allowed, other)
				}
			}
			r.truths.add(Truth{Span: part, Allowed: allowed})
		}
		r.overtake(epoch.To, now)
	}
	return r.truths
}

// overtake adds what an aggregator says that read these reports before they changed at to, and its clock within its latency after: an entry may be
// stale by then, or a grace over.
func (r *truthReader) overtake(to time.Time, last visible) {
	until := to.Add(r.bounds.Latency())
	for _, part := range r.thresholds(span.New(to, until), last) {
		allowed := r.allowedAt(part.From.Add(part.Length()/2), last)
		if now := r.truths.All[len(r.truths.All)-1].Allowed; !slices.EqualFunc(now, allowed, Rollups.equal) {
			r.truths.overtaken = append(r.truths.overtaken, Truth{Span: span.New(part.From, until).Grow(r.bounds.Tolerance, 0), Allowed: allowed})
		}
	}
}

// epochs are the instants at which something visible changed.
func (r *truthReader) epochs() []time.Time {
	cuts := []time.Time{r.period.From, r.period.To}
	for _, states := range r.reports {
		for _, s := range states {
			cuts = append(cuts, s.From)
		}
	}
	if len(r.cr.Snapshots) > 0 {
		cuts = append(cuts, r.cr.Since)
	}
	for _, x := range r.expectations {
		cuts = append(cuts, x.From, span.Earliest(x.sure, r.period.To))
	}
	for _, s := range r.aggregators {
		cuts = append(cuts, s.From)
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

// thresholds cuts an epoch where an entry becomes stale (4 I after its check), stops being skewed (I before its check),
// or where a grace may or must end.
func (r *truthReader) thresholds(epoch span.Span, now visible) []span.Span {
	cuts := []time.Time{epoch.From, epoch.To}
	for _, report := range now.reports {
		for _, e := range report.Entries {
			cuts = append(cuts, e.Checked.Add(contract.StaleAfter(r.bounds.Interval)), e.Checked.Add(-r.bounds.Interval))
		}
	}
	for _, g := range now.graces {
		cuts = append(cuts, g.mayEnd, g.mustEnd)
	}
	return pieces(slices.DeleteFunc(cuts, func(t time.Time) bool { return t.Before(epoch.From) || t.After(epoch.To) }))
}

// allowedAt is the table under every reading that makes a difference at an instant.
func (r *truthReader) allowedAt(now time.Time, seen visible) (out []Rollups) {
	late := scene{now: now, interval: r.bounds.Interval, Expectation: seen.Expectation, reports: seen.reports, overdue: func(n string) bool { return now.After(seen.graces[n].mustEnd) }}
	early := late
	early.overdue = func(n string) bool { return now.After(seen.graces[n].mayEnd) }
	strangers, unsound := false, false
	for n, report := range seen.reports {
		strangers = strangers || !seen.expects(n)
		unsound = unsound || !late.sound(report)
	}
	for _, how := range readings(strangers, unsound) {
		out = addRollups(addRollups(out, late.table(how)), early.table(how))
	}
	return out
}

func addRollups(list []Rollups, r Rollups) []Rollups {
	if slices.ContainsFunc(list, r.equal) {
		return list
	}
	return append(list, r)
}

// readings returns all readings that differ in what makes a difference now: at most 8, and one in most scenes.
func readings(strangers, unsound bool) (out []reading) {
	for n := range 8 {
		how := reading{strangers: n&1 != 0, staleKeys: n&2 != 0, perReport: n&4 != 0}
		if (strangers || !how.strangers) && (unsound || !how.staleKeys && !how.perReport) {
			out = append(out, how)
		}
	}
	return out
}

// grace is the end of a node's grace for its first report, 4 I after the aggregator first knew that the node should
// report. The history only bounds that instant: from mayEnd on the aggregator may call the node missing, from mustEnd on
// it must.
type grace struct{ mayEnd, mustEnd time.Time }

// readRestarts reads what may have begun a grace.
func (r *truthReader) readRestarts() {
	standing := span.Where(r.cr.Of(contract.ConditionDegraded), present)
	for _, s := range r.aggregators {
		if s.Event != history.ProcessStarted && s.Event != history.ProcessReady {
			continue
		}
		r.restarts = append(r.restarts, s.From)
		if !standing.Contains(s.From) {
			r.blank = append(r.blank, s.From)
		}
	}
}

// visible returns what could be seen from t on, with the grace of every expected node that has no report. An aggregator that restarts
// knows the node's creation only, and one that starts while no rollup stands on the CR may count from its start.
func (r *truthReader) visible(t time.Time, x Expectation, reports map[string]*Report) visible {
	graces := map[string]grace{}
	stale := contract.StaleAfter(r.bounds.Interval)
	for name, n := range x.Nodes {
		if reports[name] != nil {
			continue
		}
		// What surely began it, and what may have: an aggregator that restarted knows the node's creation only.
		seen := span.Latest(beginOf(r.expectations.Node(name), t), beginOf(r.expectations.KMSActive(), t))
		for _, s := range r.reports[name] {
			if s.Value == nil && !s.From.After(t) { // it vanished
				seen = span.Latest(seen, s.From)
			}
		}
		early := seen
		if slices.ContainsFunc(r.restarts, func(at time.Time) bool { return !at.After(t) && !at.Before(seen) }) {
			early = time.Time{}
		}
		early = span.Latest(early, n.Since)
		if !seen.After(r.expectations[0].From) { // expected since before the recording began
			early = n.Since
		}
		late := span.Latest(seen, n.Since.Add(time.Second))
		for _, at := range r.blank {
			if !at.After(t) {
				late = span.Latest(late, at.Add(r.bounds.Takeover))
			}
		}
		graces[name] = grace{early.Add(stale - r.bounds.Tolerance), late.Add(stale + r.bounds.Latency())}
	}
	return visible{x, reports, graces}
}

// beginOf is the beginning of the span that has t; zero if there is none.
func beginOf(s span.Set, t time.Time) time.Time {
	for _, x := range s {
		if x.Contains(t) {
			return x.From
		}
	}
	return time.Time{}
}
