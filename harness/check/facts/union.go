package facts

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// United is what a condition of the ClusterOperator had to say in a span of time.
type United struct {
	span.Span
	Status  string   // empty while it has no source
	Sources []string // the types that decided, where the status is not the good one
	Held    []string // the types that may not be named yet, where the status is not the good one
}

func (u United) String() string {
	if len(u.Sources) == 0 {
		return u.Status
	}
	return u.Status + " because of " + strings.Join(u.Sources, ", ")
}

// source is a condition that is united, with the end of its inertia: until then it counts as good (library-go,
// status.UnionClusterCondition).
type source struct {
	status string    // True, False or Unknown
	ends   time.Time // of its inertia
}

// sourceChange is a new state of the condition of a name.
type sourceChange struct {
	name string
	State[history.Condition]
}

// Unions tells what the conditions of the ClusterOperator had to say: each unites the conditions of the CR that end in its type.
type Unions struct {
	cr      *CR
	options contract.Union
	bounds  Bounds
	period  span.Span
}

// Of returns the union of a suffix over time. The end of a condition's inertia is known to about a second, since
// lastTransitionTime has whole seconds. With inertia the result is two sequences: in one each inertia ends at the first
// possible instant, in the other at the last. A value is right if it is right in one of them.
func (us *Unions) Of(suffix string) []United {
	var changes []sourceChange
	for _, t := range sortedKeys(us.cr.States) {
		if !strings.HasSuffix(t, suffix) || strings.HasPrefix(t, contract.ReporterConditionPrefix) {
			continue
		}
		for _, s := range us.cr.States[t] {
			changes = append(changes, sourceChange{t, s})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	slices.SortStableFunc(changes, func(a, b sourceChange) int { return a.From.Compare(b.From) })
	last := us.since(suffix, changes, func(c sourceChange) time.Time { return c.From })
	if !us.HasInertia(suffix) {
		return last
	}
	return append(last, us.since(suffix, changes, us.transitionOf)...)
}

// HasInertia reports whether conditions of a suffix have inertia.
func (us *Unions) HasInertia(suffix string) bool {
	return suffix == contract.ClusterOperatorDegraded && !us.options.Inertia.IsZero()
}

// transitionOf returns the first instant at which a condition can have got its status. That is its lastTransitionTime,
// which its writer chooses. For the aggregator's own conditions it is trusted only as far as the latency allows, so that
// an aggregator cannot end its own inertia early by an old lastTransitionTime.
func (us *Unions) transitionOf(c sourceChange) time.Time {
	at, err := time.Parse(time.RFC3339, c.Value.LastTransitionTime)
	if err != nil {
		at = time.Time{} // as old as can be
	}
	if slices.Contains(contract.RollupTypes(), c.name) {
		at = span.Latest(at, c.From.Add(-us.bounds.Latency()-time.Second))
	}
	return span.Earliest(at, c.From)
}

// since is the union of a suffix over time where inertia counts from begin.
func (us *Unions) since(suffix string, changes []sourceChange, begin func(sourceChange) time.Time) []United {
	out := []United{{Span: span.New(us.period.From, changes[0].From)}}
	now := map[string]source{}
	for i, c := range changes {
		was, there := now[c.name]
		delete(now, c.name)
		if c.Value != nil {
			s := source{status: normal(c.Value.Status), ends: was.ends}
			if !there || was.status != s.status {
				s.ends = time.Time{}
				if us.HasInertia(suffix) {
					s.ends = begin(c).Add(us.options.Inertia.Of(c.name))
				}
			}
			now[c.name] = s
		}
		to := us.period.To
		if i+1 < len(changes) {
			to = changes[i+1].From
		}
		cuts := []time.Time{c.From, to}
		for _, s := range now {
			if s.ends.After(c.From) && s.ends.Before(to) {
				cuts = append(cuts, s.ends)
			}
		}
		for _, s := range pieces(cuts) {
			u := us.unite(suffix, now, s.From)
			u.Span = s
			out = append(out, u)
		}
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

// unite applies the rule of library-go to the conditions at an instant: any bad one decides, then any unknown one. With
// UnknownIsBad (library-go's own behaviour) all that are not good decide together, once the inertia of one of them is
// over. Held has those that must not be named yet.
func (us *Unions) unite(suffix string, conditions map[string]source, at time.Time) United {
	if len(conditions) == 0 {
		return United{}
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
	switch {
	case len(by) == 0:
		return United{Status: good}
	case us.options.UnknownIsBad && slices.ContainsFunc(notGood, func(t string) bool { return conditions[t].status == bad }):
		return United{Status: bad, Sources: notGood}
	case us.options.UnknownIsBad:
		return United{Status: "Unknown", Sources: notGood}
	case len(by[bad]) > 0:
		return United{Status: bad, Sources: by[bad], Held: held}
	}
	return United{Status: "Unknown", Sources: by["Unknown"], Held: held}
}
