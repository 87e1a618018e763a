package invariants

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// The union is computed from the CR as it stood (facts.Unions), so that a rollup that is wrong is not reported a second
// time here.
func judgeUnion(v *facts.Facts) (f Finding) {
	for _, t := range slices.Sorted(maps.Keys(v.ClusterOperator.States)) {
		for _, s := range v.ClusterOperator.States[t] {
			if s.Value != nil && leaked(t, s.Value.Message) {
				f.Violate(Violation{Rule: "reports", At: s.From, Seq: s.Seq, Seen: "a reporter's condition on the ClusterOperator: " + text.Condition(s.Value), Allowed: "no " + contract.ReporterConditionPrefix + "*"})
			}
		}
	}
	judgeLeft(v, &f)
	for _, suffix := range []string{contract.ClusterOperatorDegraded, contract.ClusterOperatorAvailable, contract.ClusterOperatorProgressing} {
		unions := v.Unions.Of(suffix)
		for i := range unions { // until the writer must have followed
			unions[i].Span = unions[i].Grow(v.Tolerance, v.Latency())
		}
		for _, s := range v.ClusterOperator.Of(suffix) {
			judged := writerAble(v).Clip(s.Span)
			if len(judged) == 0 || len(unions) == 0 {
				continue
			}
			f.judgedThrough(judged)
			explained := span.Where(unions, func(u facts.United) bool { return u.Status == "" || explains(u, s.Value) })
			for _, wrong := range judged.Intersect(explained.Complement(s.Span)) {
				allowed := map[string]bool{}
				for _, u := range unions {
					if u.Contains(wrong.From) {
						allowed[u.String()] = true
					}
				}
				f.Violate(Violation{At: wrong.From, Seq: s.Seq, Seen: "ClusterOperator " + suffix + ": " + text.Condition(s.Value), Allowed: strings.Join(slices.Sorted(maps.Keys(allowed)), " or ")})
			}
		}
	}
	return f
}

// operatorStarts is how long an operator under test may take from its start until it has written the ClusterOperator. In library-go the lease of one that
// was killed is valid for 137 s, and its successor tries to take it every 26 s.
const operatorStarts = 3 * time.Minute

// writerAble returns when the writer of the ClusterOperator could write it. The writer is the aggregator, or with Union.Leave the operator under test, which
// reaches the API in the same way as the aggregator.
func writerAble(v *facts.Facts) span.Set {
	if !v.Run.Union.Leave {
		return v.Aggregator.Able
	}
	return v.Aggregator.Able.Intersect(v.Processes.While(facts.Process{Role: history.RoleOperator}, facts.Up).Settled(operatorStarts))
}

// judgeLeft: an aggregator that leaves the ClusterOperator to another program does not write it.
func judgeLeft(v *facts.Facts, f *Finding) {
	for _, r := range v.Requests.All {
		if v.Run.Union.Leave && r.ByAggregator() && r.Write && r.OnClusterOperator {
			f.Violate(Violation{At: r.At, Seq: r.Seq, Seen: "the aggregator writes the ClusterOperator, which is left to the operator", Allowed: "one writer"})
		}
	}
}

// leaked reports whether a reporter's condition is a condition of the ClusterOperator, or the source of a line of a
// message ("TYPE: message", as library-go joins them).
func leaked(conditionType, message string) bool {
	return strings.HasPrefix(conditionType, contract.ReporterConditionPrefix) || slices.ContainsFunc(strings.Split(message, "\n"), func(line string) bool {
		source, _, ok := strings.Cut(line, ": ")
		return ok && strings.HasPrefix(source, contract.ReporterConditionPrefix)
	})
}

// explains reports whether a condition of the ClusterOperator is as a union demands: its status, every deciding source
// named in its message (unless that is cut), and none that is still held back by its inertia.
func explains(u facts.United, c *history.Condition) bool {
	if c == nil || c.Status != u.Status {
		return false
	}
	unnamed := func(source string) bool {
		return !strings.Contains(c.Message, source+": ") && !isCut(c.Message)
	}
	held := func(source string) bool { return strings.Contains("\n"+c.Message, "\n"+source+": ") }
	return !slices.ContainsFunc(u.Sources, unnamed) && !slices.ContainsFunc(u.Held, held)
}
