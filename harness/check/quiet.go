package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func quiet() Invariant {
	return Invariant{
		ID:        "QUIET",
		Statement: "in a steady state the aggregator writes nothing; one that is refused backs off, and keeps to Retry-After",
		Source:    "The aggregator",
		Rules:     []Rule{{Code: ruleRestraint, Statement: "an aggregator that is refused asks at most ten times in a second, and keeps to Retry-After", House: true}},
		Timed:     AllTimed,
		Judge:     judgeQuiet,
	}
}

func judgeQuiet(v *Facts) (f Finding) {
	if len(v.requests.all) == 0 {
		return f
	}
	cr, co := causesToWrite(v)
	slow := v.network.prompt(history.RoleAggregator, history.RoleLoadBalancer, history.RoleAPIServer)
	late := slow.not(v.complete).or(lateCauses(v))
	cr, co = heldUp(cr, late), heldUp(co, late)
	steady := co.not(v.complete)
	for _, s := range steady {
		if s.length() >= v.interval() {
			f.JudgedAt(s.from, s.to)
		}
	}
	f.measure("steady", short(steady.total()))
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if !r.aggregator() || !r.write || !r.onCR && !v.isClusterOperator(r.Resource, r.Name) {
			continue
		}
		f.JudgedAt(r.received, r.at)
		cause := co
		if r.onCR {
			cause = cr
		}
		if !cause.touches(span{r.received, r.at.Add(v.tolerance() + 1)}) {
			f.Violate(Violation{At: r.at, Seq: r.seq, Seen: r.writer() + " wrote " + r.Verb + " " + r.Resource + " " + r.Name + " although nothing had changed",
				Allowed: "no write unless a report (other than its lastChecked), an expectation or a rollup changed within the last " + short(v.latency())})
		}
	}
	judgeIdle(v, &f)
	judgeRestraint(v, &f)
	return f
}

// heldUp is when there is cause to write, where what the aggregator answers to may come late: who has cause in such a time, has it until its end.
func heldUp(causes, late spans) spans {
	out := append(spans(nil), causes...)
	for _, l := range late {
		if within := causes.clip(l); len(within) > 0 {
			out = append(out, span{firstOf(within), l.to})
		}
	}
	return merged(out)
}

// lateCauses is when what the aggregator answers to may be longer ago than a latency: it learnt of it late, or was refused until now.
func lateCauses(v *Facts) spans {
	var out []span
	for _, l := range v.network.late {
		out = append(out, l.grow(v.tolerance(), l.late+v.latency()))
	}
	for _, r := range v.network.refusals {
		if r.of(history.RoleAggregator) {
			out = append(out, span{r.from.Add(-v.tolerance()), r.lastRetry().Add(v.latency())})
		}
	}
	return merged(out)
}

// judgeIdle: it writes only when a rollup changes, so that a write which changed nothing was one too many. After a lost answer, or when
// it may have lost its place, it cannot know.
func judgeIdle(v *Facts, f *Finding) {
	doubts := []span{{v.complete.from, v.complete.from.Add(v.takeover())}}
	for _, s := range v.processes.disturbances {
		doubts = append(doubts, span{s.at.Add(-v.latency()), s.at.Add(v.takeover() + v.latency())})
	}
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if r.aggregator() && r.write && !r.succeeded() {
			doubts = append(doubts, span{r.received, r.at.Add(v.takeover())})
		}
	}
	sure := merged(doubts).not(v.complete)
	for i := range v.requests.all {
		r := &v.requests.all[i]
		if !r.aggregator() || !r.write || !r.succeeded() || r.ResourceVersion == "" || !sure.covers(span{r.received, r.at}) {
			continue
		}
		made, known := v.requests.byRV[r.ResourceVersion]
		if f.Judged++; known && made != i {
			f.Violate(Violation{At: r.at, Seq: r.seq, Seen: r.writer() + " wrote " + r.Resource + " " + r.Name + " and changed nothing: it was as event " + number(v.requests.all[made].seq) + " had left it",
				Allowed: "a write only when a rollup changes"})
		}
	}
}

// causesToWrite is when the aggregator may write the CR, and the ClusterOperator: for one latency after something
// that it must answer to, for a takeover more after it may have lost its place.
func causesToWrite(v *Facts) (cr, co spans) {
	var out, fromRollups []span
	cause := func(list *[]span, t time.Time, lasting time.Duration) {
		*list = append(*list, span{t.Add(-v.tolerance()), t.Add(lasting)})
	}
	cause(&out, v.complete.from, v.takeover()+v.latency())
	for _, s := range v.processes.disturbances {
		cause(&out, s.at, v.takeover()+v.latency())
	}
	for p := range v.processes.procs {
		if !disturbsAggregator(p.role) {
			continue
		}
		for _, starting := range v.processes.in(p, procStarting) { // it may serve long before it is said to be ready
			out = append(out, starting.grow(v.tolerance(), v.takeover()+v.latency()))
		}
	}
	for _, off := range v.clocks.settled("").not(v.complete) {
		out = append(out, off.grow(v.tolerance(), v.takeover()+v.latency()))
	}
	for _, t := range v.truths.all {
		cause(&out, t.from, v.latency())
		if len(t.allowed) > 1 { // the instant of the change is not known
			out = append(out, t.grow(v.tolerance(), v.latency()))
		}
	}
	for _, x := range v.expectations.all {
		cause(&out, x.from, v.latency())
	}
	for _, changes := range v.objects.reports {
		for i, c := range changes {
			if i == 0 || !sameNews(changes[i-1].rep, c.rep) || !sameAges(v, changes[i-1].rep, c.rep, c.at) {
				cause(&out, c.at, v.latency())
			}
			for _, at := range ages(v, changes, i) {
				cause(&out, at, v.latency())
				if i+1 < len(changes) {
					cause(&out, changes[i+1].at, v.latency())
				}
			}
		}
	}
	for t, changes := range v.objects.crConds {
		_, isReport := contract.NodeOfCondition(t)
		for _, c := range changes {
			switch {
			case slices.Contains(contract.RollupTypes(), t):
				cause(&fromRollups, c.at, v.latency())
			case !isReport:
				cause(&out, c.at, v.latency())
			}
		}
	}
	if hasInertia(v, contract.ClusterOperatorDegraded) { // an inertia ended
		for _, u := range unions(v, contract.ClusterOperatorDegraded) {
			cause(&fromRollups, u.from, v.latency())
		}
	}
	for n := range v.requests.all { // somebody else meddled, or its own write failed
		r := &v.requests.all[n]
		mine := r.aggregator() && !r.succeeded()
		if r.write && (mine || !r.ours() && (r.onCR || v.isClusterOperator(r.Resource, r.Name))) {
			cause(&out, r.at, v.latency())
		}
	}
	for _, node := range v.objects.reportingNodes() { // an orphan is removed when it is stale
		gone := v.expectations.ofNode(node).not(v.complete)
		for _, s := range v.objects.present(node).and(gone) {
			out = append(out, s.grow(v.tolerance(), v.latency()))
		}
	}
	cr = merged(out)
	return cr, cr.or(merged(fromRollups))
}

// ages are the instants at which an entry of a report became stale while it stood: the message names it from then until the next
// report, whatever is worse.
func ages(v *Facts, changes []reportChange, i int) (out []time.Time) {
	if changes[i].rep == nil {
		return nil
	}
	for _, e := range changes[i].rep.entries {
		at := e.checked.Add(contract.StaleAfter(v.interval()))
		if i+1 == len(changes) || changes[i+1].at.After(at) {
			out = append(out, at)
		}
		if at := e.checked.Add(-v.interval()); at.After(changes[i].at) {
			out = append(out, at) // no longer skewed
		}
	}
	return out
}

// sameAges says whether the entries of two reports of the same news are believed, stale or skewed alike: the message names one that
// is not believed, whatever is worse. A clock that is wrong writes reports that are stale when they come.
func sameAges(v *Facts, a, b *report, now time.Time) bool {
	return a == nil || b == nil || slices.EqualFunc(a.entries, b.entries, func(x, y entry) bool {
		return contract.FreshnessAt(now, x.checked, v.interval()) == contract.FreshnessAt(now, y.checked, v.interval())
	})
}

// sameNews: two reports that differ in nothing but when they were checked.
func sameNews(a, b *report) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.problem == b.problem && slices.EqualFunc(a.entries, b.entries, func(x, y entry) bool {
		return x.keyID == y.keyID && x.kekID == y.kekID && x.status == y.status && x.detail == y.detail
	})
}

// sourceChanges are the changes of the conditions that are united into the given suffix, in time.
func (ob *objectFacts) sourceChanges(isSource func(string) bool) []sourceChange {
	var out []sourceChange
	for _, t := range sortedKeys(ob.crConds) {
		if !isSource(t) {
			continue
		}
		for _, c := range ob.crConds[t] {
			out = append(out, sourceChange{c.at, t, c.cond})
		}
	}
	slices.SortStableFunc(out, func(a, b sourceChange) int { return a.at.Compare(b.at) })
	return out
}

type sourceChange struct {
	at   time.Time
	name string
	cond *history.Condition
}
