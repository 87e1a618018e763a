package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// truth is what the rollups had to say in a span of time: any of allowed. While nothing is required (KMS inactive,
// nothing known yet) open is set.
type truth struct {
	span
	open    bool
	allowed []rollups
}

func (t truth) equals(o truth) bool {
	return t.open == o.open && slices.EqualFunc(t.allowed, o.allowed, func(a, b rollups) bool {
		return a.degraded == b.degraded && a.available == b.available && a.progressing == b.progressing && slices.Equal(a.named, b.named)
	})
}

type truths struct {
	facts *Facts
	all   []truth // over time
	// overtaken are of reports that were read before they changed, by a clock that was read after that. Their spans are when they may be said.
	overtaken []truth
}

// read reads the whole run, cut at every instant at which what the rollups must say may change: a report
// changed, the expectation changed, or the clock passed a threshold.
func (tr *truths) read() {
	add := func(t truth) {
		if n := len(tr.all); n > 0 && tr.all[n-1].to.Equal(t.from) && tr.all[n-1].equals(t) {
			tr.all[n-1].to = t.to
			return
		}
		tr.all = append(tr.all, t)
	}
	awaiting := newAwaiting(tr.facts)
	var last settled
	cuts := tr.epochs()
	for i := 0; i+1 < len(cuts); i++ {
		epoch := span{cuts[i], cuts[i+1]}
		x, known := tr.facts.expectations.at(epoch.from)
		s := tr.facts.objects.crAt(epoch.from)
		if !known || !x.active || s == nil || len(x.nodes) == 0 {
			add(truth{span: epoch, open: true})
			continue
		}
		graces := awaiting.graces(epoch.from, x, s.reports)
		for _, part := range tr.thresholds(epoch, s.reports, graces) {
			middle := part.from.Add(part.length() / 2)
			allowed := last.allowed(tr.facts, middle, x, s.reports, graces)
			if part.from.Before(x.sure) {
				allowed = tr.orAsBefore(x, middle, allowed, awaiting, s.reports)
			}
			add(truth{span: part, allowed: allowed})
		}
		tr.overtake(epoch.to, x, s.reports, graces, &last)
	}
}

// orAsBefore adds to what x allows what the expectation before it does, while it is not sure that x holds already.
func (tr *truths) orAsBefore(x expectation, now time.Time, allowed []rollups, a *awaiting, reports map[string]*report) []rollups {
	before, known := tr.facts.expectations.at(x.from.Add(-1))
	if !known || !before.active || len(before.nodes) == 0 {
		return allowed
	}
	for _, r := range tr.allowedAt(now, before, reports, a.graces(now, before, reports)) {
		allowed = addRollups(allowed, r)
	}
	return allowed
}

// overtake adds what an aggregator says that read these reports before they changed at to, and its clock within its latency after: an entry may be
// stale by then, or a grace over.
func (tr *truths) overtake(to time.Time, x expectation, reports map[string]*report, graces map[string]grace, last *settled) {
	until := to.Add(tr.facts.latency())
	for _, part := range tr.thresholds(span{to, until}, reports, graces) {
		t := truth{span: span{part.from, until}.grow(tr.facts.tolerance(), 0), allowed: last.allowed(tr.facts, part.from.Add(part.length()/2), x, reports, graces)}
		if now := (truth{allowed: tr.all[len(tr.all)-1].allowed}); !now.equals(truth{allowed: t.allowed}) {
			tr.overtaken = append(tr.overtaken, t)
		}
	}
}

// epochs are the instants at which something visible changed.
func (tr *truths) epochs() []time.Time {
	cuts := []time.Time{tr.facts.complete.from, tr.facts.complete.to}
	var previous map[string]*report
	for i, s := range tr.facts.objects.crs {
		if i == 0 || !sameReports(previous, s.reports) {
			cuts = append(cuts, s.at)
		}
		previous = s.reports
	}
	for _, x := range tr.facts.expectations.all {
		cuts = append(cuts, x.from, earliest(x.sure, tr.facts.complete.to))
	}
	for _, p := range tr.facts.processes.ofRole(history.RoleAggregator) {
		for _, c := range tr.facts.processes.procs[p] {
			cuts = append(cuts, c.at)
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

func sameReports(a, b map[string]*report) bool {
	if len(a) != len(b) {
		return false
	}
	for n, r := range a {
		if b[n] != r {
			return false
		}
	}
	return true
}

func (ob *objectFacts) crAt(t time.Time) *snapshot {
	i := sort.Search(len(ob.crs), func(i int) bool { return ob.crs[i].at.After(t) }) - 1
	if i < 0 {
		return nil
	}
	return &ob.crs[i]
}

// thresholds cuts an epoch where an entry becomes stale, stops being skewed, or a grace may or must end.
func (tr *truths) thresholds(epoch span, reports map[string]*report, graces map[string]grace) []span {
	cuts := []time.Time{epoch.from, epoch.to}
	add := func(t time.Time) {
		if t.After(epoch.from) && t.Before(epoch.to) {
			cuts = append(cuts, t)
		}
	}
	for _, r := range reports {
		for _, e := range r.entries {
			add(e.checked.Add(contract.StaleAfter(tr.facts.interval())))
			add(e.checked.Add(-tr.facts.interval()))
		}
	}
	for _, g := range graces {
		add(g.mayEnd)
		add(g.mustEnd)
	}
	slices.SortFunc(cuts, time.Time.Compare)
	var out []span
	for i := 0; i+1 < len(cuts); i++ {
		if s := (span{cuts[i], cuts[i+1]}); !s.empty() {
			out = append(out, s)
		}
	}
	return out
}

// allowedAt is the table under every reading that makes a difference now.
func (tr *truths) allowedAt(now time.Time, x expectation, reports map[string]*report, graces map[string]grace) []rollups {
	s := scene{now: now, interval: tr.facts.interval(), expected: map[string]bool{}, reports: reports, overdue: map[string]bool{}}
	for n := range x.nodes {
		s.expected[n] = true
	}
	may := map[string]bool{}
	for n, g := range graces {
		s.overdue[n] = now.After(g.mustEnd)
		may[n] = now.After(g.mayEnd)
	}
	strangers, unsound := false, false
	for n, r := range reports {
		strangers = strangers || !s.expected[n]
		unsound = unsound || !s.sound(r)
	}
	var out []rollups
	for _, how := range readings(strangers, unsound) {
		out = addRollups(out, s.table(how))
		late := s
		late.overdue = may
		out = addRollups(out, late.table(how))
	}
	return out
}

func addRollups(list []rollups, r rollups) []rollups {
	for _, x := range list {
		if (truth{allowed: []rollups{x}}).equals(truth{allowed: []rollups{r}}) {
			return list
		}
	}
	return append(list, r)
}

func readings(strangers, unsound bool) []reading {
	out := []reading{{}}
	vary := func(set func(*reading)) {
		for _, r := range slices.Clone(out) {
			set(&r)
			out = append(out, r)
		}
	}
	if strangers {
		vary(func(r *reading) { r.strangers = true })
	}
	if unsound {
		vary(func(r *reading) { r.staleKeys = true })
		vary(func(r *reading) { r.perReport = true })
	}
	return out
}
