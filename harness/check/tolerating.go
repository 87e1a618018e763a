package check

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// tolerating is the same history, judged with a tolerance that is longer, and without the probes that ran out of time by CPU starvation.
func (sv *starvationFacts) tolerating(added time.Duration) *Facts {
	if sv.again[added] == nil {
		if sv.again == nil {
			sv.again = map[time.Duration]*Facts{}
		}
		sv.again[added] = digest(sv.facts.all, &added)
	}
	return sv.again[added]
}

// judgedOnce is what an invariant finds; many violations are compared with it.
func (sv *starvationFacts) judgedOnce(i Invariant) Finding {
	f, done := sv.findings[i.ID]
	if !done {
		if sv.findings == nil {
			sv.findings = map[string]Finding{}
		}
		f = i.Judge(sv.facts)
		sv.findings[i.ID] = f
	}
	return f
}

// longStarvation is when, with a longer tolerance, nothing is expected to be well: the intervals of which more than half was starved. What a
// reporter or an aggregator misses then it makes good within the recovery bound.
func (sv *starvationFacts) long() spans {
	if sv.added == nil {
		return nil
	}
	starved := sv.spansOf(func(process) bool { return true })
	var out []span
	for _, s := range starved {
		if interval := (span{s.to.Add(-sv.facts.interval()), s.to}); starved.clip(interval).total() > sv.facts.interval()/2 {
			out = append(out, span{earliest(s.from, interval.from), s.to})
		}
	}
	return merged(out)
}

// ranOut reports whether an entry is an error only because the time of its probe was starved: it says that its deadline passed, and more than
// half of that time was starved. Less than half explains nothing: a probe takes milliseconds.
func (sv *starvationFacts) ranOut(p plugin, e entry) bool {
	if sv.added == nil || e.status != contract.StatusError || !strings.Contains(letters(e.detail), "deadlineexceeded") {
		return false
	}
	deadline := sv.facts.run.Timing.ProbeTimeout
	probe := span{e.checked.Add(-deadline), e.checked.Add(e.precision + deadline)} // lastChecked may be its beginning or its end
	return sv.spansOf(truthfulProbe().Tolerance.concerns(sv.facts, p.node)).clip(probe).total() > deadline/2
}

// probesThatRanOut is when probes of a plugin ran out of time.
func (sv *starvationFacts) probesThatRanOut(p plugin) spans {
	if sv.added == nil {
		return nil
	}
	var out []span
	for _, c := range sv.facts.objects.reports[p.node] {
		if c.rep == nil {
			continue
		}
		for _, e := range c.rep.entries {
			if e.keyID == p.keyID && sv.ranOut(p, e) {
				out = append(out, span{e.checked, e.checked.Add(e.precision + sv.facts.run.Timing.ProbeTimeout)})
			}
		}
	}
	return merged(out)
}
