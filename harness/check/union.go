package check

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func union() Invariant {
	return Invariant{
		ID:        "UNION",
		Statement: "the ClusterOperator condition equals the union of the suffix-matched conditions, Degraded once its inertia is over and not before; reporter conditions never reach it",
		Source:    "The aggregator, suffix routing",
		Rules:     []Rule{{Code: ruleReports, Statement: "no condition of a reporter is in the ClusterOperator"}},
		Timed:     AllTimed,
		Judge:     judgeUnion,
	}
}

func judgeUnion(v *Facts) (f Finding) {
	for _, t := range sortedKeys(v.objects.coConds) {
		for _, c := range v.objects.coConds[t] {
			if c.cond != nil && leaked(t, c.cond.Message) {
				f.Violate(Violation{Rule: ruleReports, At: c.at, Seq: c.seq, Seen: "a reporter's condition on the ClusterOperator: " + shown(c.cond), Allowed: "no " + contract.ReporterConditionPrefix + "*"})
			}
		}
	}
	judgeLeft(v, &f)
	for _, suffix := range suffixes() {
		unions := unions(v, suffix)
		for _, s := range v.objects.clusterOperator(suffix) {
			judged := v.able.uniting().clip(s.span)
			if len(judged) == 0 || len(unions) == 0 {
				continue
			}
			f.JudgedAt(firstOf(judged), judged[len(judged)-1].to)
			var explained []span
			for _, u := range unions {
				near := u.grow(v.tolerance(), v.latency())
				if u.status == "" || u.explains(s.cond) {
					explained = append(explained, near)
				}
			}
			for _, wrong := range judged.and(merged(explained).not(s.span)) {
				allowed := map[string]bool{}
				for _, u := range unions {
					if u.grow(v.tolerance(), v.latency()).has(wrong.from) {
						allowed[u.String()] = true
					}
				}
				f.Violate(Violation{At: wrong.from, Seq: s.seq, Seen: "ClusterOperator " + suffix + ": " + shown(s.cond), Allowed: joined(sortedKeys(allowed), " or ")})
			}
		}
	}
	return f
}

// judgeLeft: an aggregator that leaves the ClusterOperator to another program does not write it.
func judgeLeft(v *Facts, f *Finding) {
	if !v.run.Union.Leave {
		return
	}
	for _, r := range v.requests.all {
		if r.aggregator() && r.write && v.isClusterOperator(r.Resource, r.Name) {
			f.Violate(Violation{At: r.at, Seq: r.seq, Seen: "the aggregator writes the ClusterOperator, which is left to the operator", Allowed: "one writer"})
		}
	}
}

// suffixes are the conditions of the ClusterOperator.
func suffixes() []string {
	return []string{contract.ClusterOperatorDegraded, contract.ClusterOperatorAvailable, contract.ClusterOperatorProgressing}
}

// leaked: a reporter's condition type as a type, or as the source of a line.
func leaked(conditionType, message string) bool {
	if strings.HasPrefix(conditionType, contract.ReporterConditionPrefix) {
		return true
	}
	for _, line := range strings.Split(message, "\n") {
		if source, _, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(source, contract.ReporterConditionPrefix) {
			return true
		}
	}
	return false
}

// united is what a ClusterOperator condition had to say in a span of time; status is empty while it has no source.
type united struct {
	span
	status  string
	sources []string // the types that decided, where the status is not the good one
	held    []string // the types that may not be named yet, where the status is not the good one
}

func (u united) String() string {
	if len(u.sources) == 0 {
		return u.status
	}
	return u.status + " because of " + joined(u.sources, ", ")
}

func (u united) explains(c *history.Condition) bool {
	if c == nil || c.Status != u.status {
		return false
	}
	for _, s := range u.sources {
		if !strings.Contains(c.Message, s+": ") && !isCut(c.Message) {
			return false
		}
	}
	return !slices.ContainsFunc(u.held, func(s string) bool { return strings.Contains("\n"+c.Message, "\n"+s+": ") })
}

// source is a condition that is united.
type source struct {
	status string    // True, False or Unknown
	ends   time.Time // of its inertia
}

// unions is the union of a suffix over time. When the inertia of a condition ends is known to about a second. With inertia the
// result is two sequences: in one each inertia ends at the first possible instant, in the other at the last.
func unions(v *Facts, suffix string) []united {
	changes := v.objects.sourceChanges(func(t string) bool {
		return strings.HasSuffix(t, suffix) && !strings.HasPrefix(t, contract.ReporterConditionPrefix)
	})
	if len(changes) == 0 {
		return nil
	}
	last := unionsSince(v, suffix, changes, func(c sourceChange) time.Time { return c.at })
	if !hasInertia(v, suffix) {
		return last
	}
	return append(last, unionsSince(v, suffix, changes, func(c sourceChange) time.Time { return transitionOf(v, c) })...)
}

// hasInertia reports whether conditions of a suffix have inertia.
func hasInertia(v *Facts, suffix string) bool {
	return suffix == contract.ClusterOperatorDegraded && !v.run.Union.Inertia.IsZero()
}

// transitionOf returns the first instant at which a condition can have got its status: its lastTransitionTime, which has whole seconds. That of
// the aggregator's own conditions is trusted only as far as its latency allows.
func transitionOf(v *Facts, c sourceChange) time.Time {
	at, err := time.Parse(time.RFC3339, c.cond.LastTransitionTime)
	if err != nil {
		at = time.Time{} // as old as can be
	}
	if slices.Contains(contract.RollupTypes(), c.name) {
		at = latest(at, c.at.Add(-v.latency()-time.Second))
	}
	return earliest(at, c.at)
}

// unionsSince is the union of a suffix over time where inertia counts from since.
func unionsSince(v *Facts, suffix string, changes []sourceChange, since func(sourceChange) time.Time) []united {
	out := []united{{span: span{v.complete.from, changes[0].at}}}
	now := map[string]source{}
	for i, c := range changes {
		was, there := now[c.name]
		delete(now, c.name)
		if c.cond != nil {
			s := source{status: normal(c.cond.Status), ends: was.ends}
			if !there || was.status != s.status {
				s.ends = time.Time{}
				if hasInertia(v, suffix) {
					s.ends = since(c).Add(v.run.Union.Inertia.Of(c.name))
				}
			}
			now[c.name] = s
		}
		to := v.complete.to
		if i+1 < len(changes) {
			to = changes[i+1].at
		}
		for _, s := range split(span{c.at, to}, now) {
			u := uniteAt(v, suffix, now, s.from)
			u.span = s
			out = append(out, u)
		}
	}
	return out
}

// split cuts a span where the inertia of a condition ends.
func split(complete span, conditions map[string]source) (out []span) {
	ends := []time.Time{complete.to}
	for _, s := range conditions {
		if s.ends.After(complete.from) && s.ends.Before(complete.to) {
			ends = append(ends, s.ends)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for _, to := range ends {
		if s := (span{complete.from, to}); !s.empty() {
			out = append(out, s)
		}
		complete.from = to
	}
	return out
}

// normal is one of the three values of a status.
func normal(status string) string {
	if status == "True" || status == "False" {
		return status
	}
	return "Unknown"
}

// unite: any bad one decides, then any unknown one. Where Unknown is bad, all that are not good decide together, once the inertia of one is over.
func uniteAt(v *Facts, suffix string, conditions map[string]source, at time.Time) united {
	if len(conditions) == 0 {
		return united{}
	}
	good, bad := "False", "True"
	if suffix == contract.ClusterOperatorAvailable {
		good, bad = bad, good
	}
	var notGood, held []string
	by := map[string][]string{}
	for _, t := range sortedKeys(conditions) {
		s := conditions[t]
		switch {
		case s.status == good:
			continue
		case s.ends.After(at):
			held = append(held, t)
		default:
			by[s.status] = append(by[s.status], t)
		}
		notGood = append(notGood, t)
	}
	if len(by) == 0 {
		return united{status: good}
	}
	if v.run.Union.UnknownIsBad {
		if slices.ContainsFunc(notGood, func(t string) bool { return conditions[t].status == bad }) {
			return united{status: bad, sources: notGood}
		}
		return united{status: "Unknown", sources: notGood}
	}
	if len(by[bad]) > 0 {
		return united{status: bad, sources: by[bad], held: held}
	}
	return united{status: "Unknown", sources: by["Unknown"], held: held}
}
