package scenario

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var keywordForm = regexp.MustCompile(`[a-z0-9]+`)

// Closest is the scenario that has most in common with a description in words; nil without any. Its name and what it does count
// more than its title, and the same area counts as well. Of several that are as close the first is taken.
func Closest(all []*Scenario, area string, description ...string) *Scenario {
	wanted := keywordsOf(description...)
	var best *Scenario
	most := -2
	for _, s := range all {
		n := 3*common(wanted, keywordsOf(s.Name, s.does())) + common(wanted, keywordsOf(s.Title))
		if s.Area == area {
			n += 2
		}
		if s.Topology.ByOperator() || len(s.Topology.Aggregated()) > 0 {
			n-- // of two that are as close, the one that runs everywhere
		}
		if n > most {
			best, most = s, n
		}
	}
	return best
}

// does is the verbs, roles, ends and faults of all actions.
func (s *Scenario) does() string {
	var out []string
	for _, a := range s.Actions() {
		out = append(out, string(VerbOf(a)))
		walk(a, func(f field, v reflect.Value) {
			if v.Kind() == reflect.String && (f.has("enum") || f.name == "fault") {
				out = append(out, v.String())
			}
		})
	}
	return strings.Join(out, " ")
}

// keywordsOf leaves out what stands in every title.
func keywordsOf(texts ...string) []string {
	keywords := keywordForm.FindAllString(strings.ToLower(strings.Join(texts, " ")), -1)
	slices.Sort(keywords)
	return slices.DeleteFunc(slices.Compact(keywords), func(w string) bool {
		return slices.Contains(strings.Fields("a an the is are it its of in on and or that to not no while when with by for"), w)
	})
}

func common(a, b []string) (n int) {
	for _, w := range a {
		if slices.Contains(b, w) {
			n++
		}
	}
	return n
}
