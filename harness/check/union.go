package check

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func union() Invariant {
	return Invariant{
		ID:        "UNION",
		Statement: "the ClusterOperator condition equals the union of the suffix-matched conditions; reporter conditions never reach it",
		Source:    "The aggregator, suffix routing",
		judge:     judgeUnion,
	}
}

func judgeUnion(v *view) (f Finding) {
	for t, changes := range v.coConds {
		for _, c := range changes {
			if c.cond != nil && leaked(t, c.cond.Message) {
				f.violate(Violation{At: c.at, Seq: c.seq, Seen: "a reporter's condition on the ClusterOperator: " + shown(c.cond), Allowed: "no " + contract.ReporterConditionPrefix + "*"})
			}
		}
	}
	for _, suffix := range []string{"Degraded", "Available", "Progressing"} {
		unions := v.unions(suffix)
		for _, s := range v.clusterOperator(suffix) {
			judged := v.aggAble.clip(s.span)
			if len(judged) == 0 || len(unions) == 0 {
				continue
			}
			f.judgedAt(firstOf(judged), judged[len(judged)-1].to)
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
				f.violate(Violation{At: wrong.from, Seq: s.seq, Seen: "ClusterOperator " + suffix + ": " + shown(s.cond), Allowed: joined(sortedKeys(allowed), " or ")})
			}
		}
	}
	return f
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
	return true
}

// unions is the union of a suffix over time.
func (v *view) unions(suffix string) []united {
	changes := v.sourceChanges(func(t string) bool {
		return strings.HasSuffix(t, suffix) && !strings.HasPrefix(t, contract.ReporterConditionPrefix)
	})
	if len(changes) == 0 {
		return nil
	}
	out := []united{{span: span{v.whole.from, changes[0].at}}}
	now := map[string]string{}
	for i, c := range changes {
		delete(now, c.name)
		if c.cond != nil {
			now[c.name] = c.cond.Status
		}
		to := v.whole.to
		if i+1 < len(changes) {
			to = changes[i+1].at
		}
		if s := (span{c.at, to}); !s.empty() {
			status, sources := unite(suffix, now)
			out = append(out, united{s, status, sources})
		}
	}
	return out
}

// unite: any bad one decides, then any unknown one.
func unite(suffix string, conditions map[string]string) (status string, sources []string) {
	if len(conditions) == 0 {
		return "", nil
	}
	good, bad := "False", "True"
	if suffix == "Available" {
		good, bad = bad, good
	}
	by := map[string][]string{}
	for _, t := range sortedKeys(conditions) {
		s := conditions[t]
		if s != good && s != bad {
			s = "Unknown"
		}
		by[s] = append(by[s], t)
	}
	for _, s := range []string{bad, "Unknown"} {
		if len(by[s]) > 0 {
			return s, by[s]
		}
	}
	return good, nil
}
