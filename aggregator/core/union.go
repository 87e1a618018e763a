package core

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// suffix is a ClusterOperator condition and how conditions of that suffix are united into it.
type suffix struct {
	name    string
	worst   string // the status of one source that decides alone
	good    string // the status when every source is good
	inertia bool
}

func suffixes() []suffix {
	return []suffix{
		{name: contract.ClusterOperatorDegraded, worst: True, good: False, inertia: true},
		{name: contract.ClusterOperatorAvailable, worst: False, good: True},
		{name: contract.ClusterOperatorProgressing, worst: True, good: False},
	}
}

// union unites the conditions of the CR into those of the ClusterOperator. Reports are left out by their prefix as
// well as by their lack of a suffix: a node may be named so that its report has one. Expires is the earliest instant at
// which the inertia of a source is over; zero if there is none.
func union(sources []Condition, rule contract.Union, now time.Time) (united []Condition, expires time.Time) {
	sources = slices.DeleteFunc(slices.Clone(sources), func(c Condition) bool {
		return strings.HasPrefix(c.Type, contract.ReporterConditionPrefix)
	})
	slices.SortFunc(sources, func(a, b Condition) int { return compare(a.Type, b.Type) })
	for _, s := range suffixes() {
		c, at := s.unite(sources, rule, now)
		united, expires = append(united, c), sooner(expires, at)
	}
	return united, expires
}

// unite is one condition of the ClusterOperator. A source that is not good decides nothing before its inertia is over. Of those that
// decide, the worst status wins, then Unknown. The sources with the winning status are named in reason and message, as
// library-go's status syncer names them.
func (s suffix) unite(sources []Condition, rule contract.Union, now time.Time) (out Condition, expires time.Time) {
	var all, deciding []Condition
	for _, c := range sources {
		if !strings.HasSuffix(c.Type, s.name) {
			continue
		}
		c.Status = s.normal(c.Status)
		if all = append(all, c); c.Status == s.good {
			continue
		}
		if at := s.expires(c, rule.Inertia); now.Before(at) {
			expires = sooner(expires, at)
		} else {
			deciding = append(deciding, c)
		}
	}
	out = Condition{Type: s.name, Status: s.good, Reason: contract.ReasonAsExpected, Message: "All is well"}
	if len(deciding) == 0 {
		if len(all) > 0 {
			out.Message = sourceLines(all)
		}
		return out, expires
	}
	out.Status = Unknown
	if slices.ContainsFunc(deciding, func(c Condition) bool { return c.Status == s.worst }) {
		out.Status = s.worst
	}
	deciding = slices.DeleteFunc(deciding, func(c Condition) bool { return c.Status != out.Status })
	out.Reason, out.Message = s.reason(deciding), sourceLines(deciding)
	return out, expires
}

// expires is the first instant at which the inertia of a source is over; zero for a source without inertia.
func (s suffix) expires(c Condition, i contract.Inertia) time.Time {
	d := i.Of(c.Type)
	if !s.inertia || d == 0 {
		return time.Time{}
	}
	return c.LastTransitionTime.Add(d).Add(instant)
}

// normal maps what is none of the three to Unknown: nobody can know what its writer meant.
func (s suffix) normal(status string) string {
	if status == s.worst || status == s.good {
		return status
	}
	return Unknown
}

// maxReasonChars bounds the joined reason, as the API does for the conditions of built-in types.
const maxReasonChars = 1024

func (s suffix) reason(sources []Condition) string {
	reasons := make([]string, len(sources))
	for i, c := range sources {
		reasons[i] = strings.TrimSuffix(c.Type, s.name) + "_" + c.Reason
	}
	return contract.SafeText(strings.Join(reasons, "::"), maxReasonChars)
}

// sourceLines prefixes every line of every source's message with the source's type.
func sourceLines(sources []Condition) string {
	var lines []string
	for _, c := range sources {
		for _, l := range strings.Split(c.Message, "\n") {
			lines = append(lines, c.Type+": "+contract.SafeText(l, contract.MaxRollupMessageChars))
		}
	}
	return bounded(lines, contract.MaxRollupMessageChars)
}
