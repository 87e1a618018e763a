package check

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// lenience says what lack of processor time can explain of an invariant's violations.
type lenience struct {
	// reach is how long before the instant of a violation that lies which it is late for; nil: no lack of time explains one.
	reach func(*view) time.Duration
	// own: only its own node, and the whole machine, can have made it late; else anything that ran.
	own bool
	// exact: no bound stretches. What ran out of time is known for each probe.
	exact bool
	why   string
}

// leniences is the table: each invariant, and why.
func leniences() map[string]lenience {
	detection := func(v *view) time.Duration { return v.run.Timing.DetectionBound() + v.tolerance() }
	recovery := func(v *view) time.Duration { return v.run.Timing.RecoveryBound() + v.tolerance() }
	aggregator := func(v *view) time.Duration { return v.latency() }
	age := func(v *view) time.Duration { return v.run.Timing.MaxProbeAge() + v.tolerance() }
	never := func(why string) lenience { return lenience{why: why} }
	return map[string]lenience{
		"FALSE-HEALTHY":         {reach: detection, why: "a bound: what stays False after the stalled time is a mistake"},
		"FALSE-ALARM":           {reach: recovery, why: "a bound, and a probe that ran out of time is an error that no plugin made"},
		"DETECTION":             {reach: detection, why: "a bound: what is not named after the stalled time is a mistake"},
		"RECOVERY":              {reach: recovery, why: "a bound: what is still named after the stalled time is a mistake"},
		"STALE-UNKNOWN":         {reach: aggregator, why: "the aggregator's own time; 4 I is measured by a clock that does not stall"},
		"ABSENCE-IS-NOT-BROKEN": {reach: aggregator, why: "the aggregator's own time"},
		"NO-ORPHAN":             {reach: aggregator, why: "the aggregator's own time"},
		"NO-RESURRECTION":       never("a return is a write, and somebody made it"),
		"OWNERSHIP":             never("content"),
		"MONOTONIC":             never("content: late is not backwards"),
		"FRESH-ONLY":            {reach: age, own: true, why: "a bound: what stalls between probe and write makes the probe older"},
		"CADENCE": {reach: func(v *view) time.Duration { return v.run.Timing.CadenceMax() + v.tolerance() }, own: true,
			why: "a bound; what could not run for a while writes late, and then sooner after that"},
		"TRUTHFUL-PROBE":  {reach: age, own: true, exact: true, why: "content, but for an error that says that its time ran out when most of its time stalled"},
		"FORMAT":          never("content"),
		"ROLLUP-TRUTH":    {reach: aggregator, why: "the aggregator's own time: what is still wrong after the stalled time is a mistake"},
		"QUIET":           {reach: aggregator, why: "a write may answer to something that is longer ago"},
		"UNION":           {reach: aggregator, why: "the aggregator's own time: what is still wrong after the stalled time is a mistake"},
		"CONVERGENCE":     {reach: aggregator, why: "the aggregator's own time"},
		"UID":             never("content"),
		"NO-DATA-LOSS":    never("content"),
		"SWITCH-ORDER":    never("order"),
		"LEAST-PRIVILEGE": never("content"),
		"KEY-ID-STABLE":   never("content"),
		"NOTHING-SECRET":  never("content"),
		"NOTHING-RAN":     never("nobody is late there"),
	}
}

// concern is which stalls can have made a violation of node late.
func (l lenience) concern(v *view, node string) func(stall) bool {
	return func(s stall) bool {
		switch {
		case s.whole() || node == "" || s.who.node == node:
			return true
		case l.own:
			return v.run.Connectivity == connectService // then any API server may have served it
		}
		return s.who.node == "" // an aggregator
	}
}

const (
	// maxPardons bounds how many violations of one invariant are looked at again. More are not the machine's.
	maxPardons = 100
	// tooBusy is the share of a run, as one in so many, that may stall before nothing late is believed any more.
	tooBusy = 5
	// tolerances is how often one bound may contain the tolerance: a grace that ends late, seen by an aggregator that is late, on a
	// watch that is late. A violation of it comes that many times later.
	tolerances = 4
	// precision of stalls: the beat that they were noticed by (harness/stall).
	stallPrecision = 50 * time.Millisecond
)

// Starved is a violation that lack of processor time explains. It is not counted as one.
type Starved struct {
	Violation
	// Why says what had no time, for how long and when.
	Why string `json:"why"`
}

// pardon takes the violations out of a finding that the machine explains: those that are none once bounds are longer by what stalled
// while they ran.
func (v *view) pardon(i Invariant, f Finding) Finding {
	l := leniences()[i.ID]
	if l.reach == nil || len(v.stalls) == 0 || f.Count == 0 || f.Count > len(f.Violations) {
		return f
	}
	kept := f.Violations[:0:0]
	for _, x := range f.Violations {
		if why, starved := v.explained(i, l, x); starved {
			f.Starved = append(f.Starved, Starved{x, why})
			f.Count--
			f.Judged = max(0, f.Judged-1)
			continue
		}
		kept = append(kept, x)
	}
	f.Violations = kept
	return f
}

// explained says whether a violation is none once there is that much more time.
func (v *view) explained(i Invariant, l lenience, x Violation) (why string, starved bool) {
	window := span{x.At.Add(-l.reach(v)), x.At}
	more, longest := v.stalledIn(window, l.concern(v, x.Node))
	if more <= 0 {
		return "", false
	}
	stretch := (more + stallPrecision - 1).Truncate(stallPrecision) // few different ones, each of which digests the history again
	if l.exact {
		stretch = 0
	}
	again := v.lenient(stretch).judgedOnce(i)
	if again.Count > len(again.Violations) {
		return "", false
	}
	for _, y := range again.Violations {
		near := !y.At.Before(x.At.Add(-stretch)) && !y.At.After(x.At.Add(tolerances*stretch))
		if near && y.Node == x.Node && y.KeyID == x.KeyID {
			return "", false
		}
	}
	return "not judged: " + longest.text() + " at +" + short(longest.from.Sub(v.whole.from)) + ", " + short(more) + " in all that could make it late", true
}

func (s stall) text() string {
	if s.queued {
		return "the machine let " + s.who.given() + " wait for a processor for " + short(s.length())
	}
	return "the machine gave " + s.who.given() + " no processor time for " + short(s.length())
}

// lenient is the same history with that much more tolerance, and without the probes that ran out of time.
func (v *view) lenient(more time.Duration) *view {
	if v.again[more] == nil {
		if v.again == nil {
			v.again = map[time.Duration]*view{}
		}
		v.again[more] = digest(v.all, &leniency{more})
	}
	return v.again[more]
}

// leniency is by how much a view judges less strictly than the contract.
type leniency struct{ more time.Duration }

// stretch makes every bound longer.
func (v *view) stretch() {
	if v.lenience != nil {
		v.run.Tolerance += v.lenience.more
	}
}

// longStalls is when, as a lenient view has it, nothing can be said to be well, because something stalled for longer than half an interval: what
// a reporter or an aggregator misses then it makes good within the recovery bound.
func (v *view) longStalls() (out spans) {
	if v.lenience == nil {
		return nil
	}
	var all []span
	for _, s := range v.stalls {
		all = append(all, s.span)
	}
	for _, s := range merged(all) {
		if s.length() > v.interval()/2 {
			out = append(out, s)
		}
	}
	return out
}

// ranOut says whether an entry is an error only because the time of its probe stalled: it says that its deadline passed, and the
// larger half of that stalled. What is less than half explains nothing: a probe takes milliseconds.
func (v *view) ranOut(p plugin, e entry) bool {
	if v.lenience == nil || e.status != contract.StatusError || !strings.Contains(letters(e.detail), "deadlineexceeded") {
		return false
	}
	deadline := v.run.Timing.ProbeTimeout
	probe := span{e.checked.Add(-deadline), e.checked.Add(e.precision + deadline)} // lastChecked may be its beginning or its end
	concerns := leniences()["TRUTHFUL-PROBE"].concern(v, p.node)
	var of []span
	for _, s := range v.stalls {
		if concerns(s) {
			of = append(of, s.span)
		}
	}
	return merged(of).clip(probe).total() > deadline/2
}

// probesThatRanOut is when that happened to a plugin.
func (v *view) probesThatRanOut(p plugin) spans {
	if v.lenience == nil {
		return nil
	}
	var out []span
	for _, c := range v.reports[p.node] {
		if c.rep == nil {
			continue
		}
		for _, e := range c.rep.entries {
			if e.keyID == p.keyID && v.ranOut(p, e) {
				out = append(out, span{e.checked, e.checked.Add(e.precision + v.run.Timing.ProbeTimeout)})
			}
		}
	}
	return merged(out)
}

// judgedOnce is what an invariant finds, which many violations are held against.
func (v *view) judgedOnce(i Invariant) Finding {
	f, done := v.findings[i.ID]
	if !done {
		if v.findings == nil {
			v.findings = map[string]Finding{}
		}
		f = i.judge(v)
		v.findings[i.ID] = f
	}
	return f
}

// given is the process as one that is given no time.
func (p process) given() string {
	if p.role == history.RoleHarness {
		return "the harness, and so most likely everything,"
	}
	if p.node == "" {
		return p.String()
	}
	name := p.node + "'s " + p.role
	if p.keyID != "" {
		name += " " + p.keyID
	}
	return name
}
