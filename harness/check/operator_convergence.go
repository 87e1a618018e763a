package check

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func operatorConvergence() Invariant {
	return Invariant{
		ID:        "OPERATOR-CONVERGENCE",
		Statement: "an operator notes that all nodes agree on a kekID only when every expected node freshly reports that kekID of a healthy plugin of the newest key",
		Source:    "The aggregator, convergence",
		Rules:     []Rule{{Code: ruleAttempt, Statement: "an attempt to encrypt everything anew ends when a node no longer agrees on the kekID", House: true}},
		Timed:     AllTimed,
		Judge:     judgeOperatorConvergence,
	}
}

// judgeOperatorConvergence judges the annotations of the newest key when they appear. What an operator does between, and how long it waits, is its own
// business.
func judgeOperatorConvergence(v *Facts) (f Finding) {
	k := newKeepers()
	var before history.Decision
	for n := range v.events {
		e := &v.events[n]
		k.apply(e)
		if e.Kind != history.KindDecision {
			continue
		}
		d := *e.Decision
		if d.Key != before.Key {
			before = history.Decision{Key: d.Key}
		}
		keyID := strconv.FormatUint(d.Key, 10)
		if d.ConvergedKEK != "" && d.ConvergedKEK != before.ConvergedKEK {
			v.judgeAgreed(&f, e, keyID, d.ConvergedKEK, Violation{Seen: "the operator notes that all nodes agree on kekID " + quoted(d.ConvergedKEK)})
		}
		if d.MigratedKEK != "" && d.MigratedKEK != before.MigratedKEK && d.MigratedKEK == before.ConvergedKEK {
			v.judgeAgreed(&f, e, keyID, d.MigratedKEK, Violation{Rule: ruleAttempt,
				Seen: "the operator notes that everything is encrypted under kekID " + quoted(d.MigratedKEK) + ", on which it had noted that all nodes agree"})
		}
		before = d
	}
	return f
}

// judgeAgreed adds x if the nodes did not agree on a kekID at any instant of which the operator may have known at e.
func (v *Facts) judgeAgreed(f *Finding, e *history.Event, keyID, kek string, x Violation) {
	window := span{e.At.Add(-v.latency()), e.At.Add(v.tolerance())}
	lacking := ""
	for _, s := range v.objects.visible(window) {
		for _, at := range []time.Time{latest(window.from, s.visible), e.At} {
			expected, known := v.expectations.at(at)
			if !known || !expected.active || len(expected.nodes) == 0 {
				return
			}
			if lacking = disagreement(scene{now: at, interval: v.interval(), reports: s.reports}, expected.nodes, keyID, kek); lacking == "" {
				f.JudgedAt(e.At, e.At)
				return
			}
		}
	}
	if lacking == "" {
		return // the CR was not seen yet
	}
	f.JudgedAt(e.At, e.At)
	x.At, x.Seq, x.KeyID, x.Seen = e.At, e.Seq, keyID, x.Seen+", while "+lacking
	x.Allowed = "when every expected node freshly reports it of a healthy plugin"
	f.Violate(x)
}

// visible are the states of the CR that could be read within a window, each from the instant from which it could be.
func (ob *objectFacts) visible(window span) (out []visible) {
	first := sort.Search(len(ob.crs), func(i int) bool { return ob.crs[i].at.After(window.from) }) - 1
	for _, s := range ob.crs[max(first, 0):] {
		from := s.at
		if i, ok := ob.facts.requests.byRV[s.rv]; ok && s.rv != "" {
			from = earliest(from, ob.facts.requests.all[i].received) // a reader may have had it before its writer did
		}
		if from.After(window.to) {
			break
		}
		out = append(out, visible{s.reports, from})
	}
	return out
}

type visible struct {
	reports map[string]*report
	visible time.Time
}

// disagreement is the first node that does not freshly report the kekID of a healthy plugin, and what it reports instead; empty: there is none. An
// entry from before its node came is that of another node of the same name.
func disagreement(s scene, nodes map[string]history.ExpectedNode, keyID, kek string) string {
	for _, node := range sortedKeys(nodes) {
		r := s.reports[node]
		if r == nil {
			return "there is no report of " + node
		}
		i := slices.IndexFunc(r.entries, func(e entry) bool { return e.keyID == keyID })
		if i < 0 || r.problem != "" {
			return node + " reports nothing that can be read of the plugin " + keyID
		}
		switch e := r.entries[i]; {
		case !s.fresh(e.checked):
			return "the report of " + node + " is from " + e.checkedText
		case e.checked.Add(e.precision).Before(nodes[node].Since):
			return "the report is of an earlier node " + node
		case e.status != contract.StatusHealthy:
			return node + " reports " + string(e.status)
		case e.kekID != kek:
			return node + " reports kekID " + quoted(e.kekID)
		}
	}
	return ""
}

func convergence() Invariant {
	return Invariant{
		ID:        "CONVERGENCE",
		Statement: "rotation is called converged exactly when every expected node freshly reports the same healthy kekID for the write key",
		Source:    "The aggregator, convergence",
		Rules:     []Rule{{Code: ruleReasons, Statement: houseReasons, House: true}},
		Timed:     AllTimed,
		Judge:     judgeConvergence,
	}
}

func judgeConvergence(v *Facts) (f Finding) {
	judged := v.able.aggregator.and(v.objects.watched()).and(v.expectations.active())
	done := value{"False", contract.ReasonAsExpected}
	for _, s := range v.objects.rollup(contract.ConditionProgressing) {
		if s.cond == nil || len(judged.clip(s.span)) == 0 {
			continue
		}
		f.JudgedAt(s.from, s.to)
		called := value{s.cond.Status, s.cond.Reason} == done
		wrong := v.truths.unexplained(s.span, judged, func(t truth) bool {
			for _, r := range t.allowed {
				if (r.progressing == done) == called {
					return true
				}
			}
			return false
		})
		status := v.truths.unexplained(s.span, judged, func(t truth) bool {
			return slices.ContainsFunc(t.allowed, func(r rollups) bool { return r.progressing.status == s.cond.Status })
		})
		for _, w := range wrong {
			rule := ""
			if len(status.clip(w)) == 0 { // only the reason tells converged from not converged
				rule = ruleReasons
			}
			f.Violate(Violation{Rule: rule, At: w.from, Seq: s.seq, Seen: shown(s.cond) + map[bool]string{true: ", which says converged", false: ", which says not converged"}[called],
				Allowed: v.truths.allowedNear(w.from, func(r rollups) string { return r.progressing.String() })})
		}
	}
	return f
}
