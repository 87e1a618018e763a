package swarm

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
)

// kindOfStep is the kind of fault that a drawn step is, in the checker's words; empty for one that is none. A drawn step is one line:
// a verb, and arguments in braces.
func kindOfStep(step string) string {
	verb, rest, _ := strings.Cut(step, ":")
	if slices.Contains([]string{"wait", "parallel", "repeat", "expect", "holds", "never"}, verb) {
		return ""
	}
	params := map[string]any{}
	for _, keyword := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("{},", r) }) {
		if name, value, ok := strings.Cut(keyword, ":"); ok {
			params[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return check.FaultKind(verb, target(params), params)
}

// target is what the engine writes of it into a history.
func target(params map[string]any) string {
	text := func(name string) string { s, _ := params[name].(string); return s }
	switch {
	case text("role") != "":
		return "process " + text("role")
	case text("from") != "":
		return "link " + text("from") + " to " + text("to")
	}
	return ""
}

// Kinds are the kinds of faults that seeds can draw. There is no list of them that could be wrong: they are found by drawing.
func Kinds() []string {
	known := map[string]bool{}
	for seed := range int64(manySeeds) {
		for line := range strings.Lines(string(Draw(seed))) {
			if step, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
				known[kindOfStep(step)] = true
			}
		}
	}
	delete(known, "")
	return slices.Sorted(maps.Keys(known))
}

// manySeeds have all kinds in them: a test looks whether more seeds have more.
const manySeeds = 1500
