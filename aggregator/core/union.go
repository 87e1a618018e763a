package core

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// suffix is a ClusterOperator condition and how conditions of that suffix are united into it.
type suffix struct {
	name  string
	worst string // the status of one source that decides alone
	good  string // the status when every source is good
}

func suffixes() []suffix {
	return []suffix{{"Degraded", True, False}, {"Available", False, True}, {"Progressing", True, False}}
}

// union unites the conditions of the CR into those of the ClusterOperator. Reports are left out by their prefix as
// well as by their lack of a suffix: a node may be named so that its report has one.
func union(sources []Condition) []Condition {
	sources = slices.DeleteFunc(slices.Clone(sources), func(c Condition) bool {
		return strings.HasPrefix(c.Type, contract.ReporterConditionPrefix)
	})
	slices.SortFunc(sources, func(a, b Condition) int { return compare(a.Type, b.Type) })
	var out []Condition
	for _, s := range suffixes() {
		out = append(out, s.unite(sources))
	}
	return out
}

// unite is one condition of the ClusterOperator: the worst status wins, then Unknown, then good. The sources with
// the winning status are named in reason and message, as library-go's status syncer names them.
func (s suffix) unite(sources []Condition) Condition {
	byStatus := map[string][]Condition{}
	for _, c := range sources {
		if strings.HasSuffix(c.Type, s.name) {
			status := s.normal(c.Status)
			byStatus[status] = append(byStatus[status], c)
		}
	}
	out := Condition{Type: s.name, Status: s.good, Reason: contract.ReasonAsExpected, Message: "All is well"}
	for _, status := range []string{s.worst, Unknown} {
		if len(byStatus[status]) > 0 {
			out.Status, out.Reason = status, s.reason(byStatus[status])
			break
		}
	}
	if deciding := byStatus[out.Status]; len(deciding) > 0 {
		out.Message = sourceLines(deciding)
	}
	return out
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
