package check

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// tolerating is the same history, judged with a tolerance that is longer, and without the probes that ran out of time by CPU starvation.
func (v *view) tolerating(added time.Duration) *view {
	if v.again[added] == nil {
		if v.again == nil {
			v.again = map[time.Duration]*view{}
		}
		v.again[added] = digest(v.all, &added)
	}
	return v.again[added]
}

// judgedOnce is what an invariant finds; many violations are compared with it.
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

// longStarvation is when, with a longer tolerance, nothing is expected to be well: the intervals of which more than half was starved. What a
// reporter or an aggregator misses then it makes good within the recovery bound.
func (v *view) longStarvation() spans {
	if v.added == nil {
		return nil
	}
	starved := v.starvedSpans(func(process) bool { return true })
	var out []span
	for _, s := range starved {
		if interval := (span{s.to.Add(-v.interval()), s.to}); starved.clip(interval).total() > v.interval()/2 {
			out = append(out, span{earliest(s.from, interval.from), s.to})
		}
	}
	return merged(out)
}

// ranOut reports whether an entry is an error only because the time of its probe was starved: it says that its deadline passed, and more than
// half of that time was starved. Less than half explains nothing: a probe takes milliseconds.
func (v *view) ranOut(p plugin, e entry) bool {
	if v.added == nil || e.status != contract.StatusError || !strings.Contains(letters(e.detail), "deadlineexceeded") {
		return false
	}
	deadline := v.run.Timing.ProbeTimeout
	probe := span{e.checked.Add(-deadline), e.checked.Add(e.precision + deadline)} // lastChecked may be its beginning or its end
	return v.starvedSpans(dependencies()["TRUTHFUL-PROBE"].concerns(v, p.node)).clip(probe).total() > deadline/2
}

// probesThatRanOut is when probes of a plugin ran out of time.
func (v *view) probesThatRanOut(p plugin) spans {
	if v.added == nil {
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
