package swarm

import (
	"regexp"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
)

// way is how a scenario failed: the first invariant that was violated; where none was, the expectation or the action that failed.
// Places in the timeline are left out, for they change when it shrinks.
type way struct{ kind, what string }

func (w way) String() string {
	if w.kind == "invariant" {
		return w.what
	}
	return w.kind + " " + w.what
}

// failedAction is what a verdict says of one.
var failedAction = regexp.MustCompile(`^action \S+ \(([^)]*)\) failed`)

// wayOf gives the way in which a verdict failed; ok is false if it passed, or nothing can be said.
func wayOf(v check.Verdict) (w way, ok bool) {
	for _, w := range ways(v) {
		return w, true
	}
	return way{}, false
}

// ways are all of them, invariants first.
func ways(v check.Verdict) (out []way) {
	for _, i := range v.Invariants {
		if i.Status == check.Failed {
			out = append(out, way{"invariant", i.ID})
		}
	}
	for _, e := range v.Expectations.Failed {
		out = append(out, way{"expectation", e.Text})
	}
	for _, p := range v.Problems {
		if m := failedAction.FindStringSubmatch(p); m != nil {
			out = append(out, way{"action", m[1]})
		}
	}
	return out
}

// short is a text for a title, on one line.
func short(s string) string {
	const most = 100
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return string(runes)
}
