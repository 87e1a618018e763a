package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// resolveAction puts the drawn node in for "any", nothing for "all", and durations in for their texts.
func (r *run) resolveAction(a scenario.Action) (scenario.Action, error) {
	for _, s := range []*scenario.Selector{&a.Plugin, &a.Process, &a.Link} {
		s.Node = r.node(s.Node)
	}
	for _, name := range []string{"node", "as", "remove", "replace"} {
		if n := a.Text(name); n != "" && (a.Verb == scenario.VerbKMS || a.Verb == scenario.VerbNode || a.Verb == scenario.VerbAttempt) {
			a = a.With(name, r.node(n))
		}
	}
	resolved, err := a.Resolve(r.heading.Timing, r.opts.Faults)
	if err != nil {
		return a, err
	}
	return resolved, nil
}

func (r *run) node(name string) string {
	switch name {
	case scenario.NodeAny:
		return r.any
	case scenario.NodeAll:
		return ""
	default:
		return name
	}
}

// target says what an action is aimed at. A plugin is NODE/KEYID, NODE/* for all of a node, "all" for all there are:
// the checker reads this.
func target(a scenario.Action, nodes []string) string {
	at := targetOf(a, nodes)
	if of := a.APIServer(); of != "" {
		at += " of " + of
	}
	return at
}

func targetOf(a scenario.Action, nodes []string) string {
	switch {
	case a.Verb == scenario.VerbInject || a.Verb == scenario.VerbRelease:
		return "plugin " + pluginTarget(a.Plugin, nodes)
	case a.Verb == scenario.VerbClock:
		return strings.TrimSpace("clock " + processTarget(a.Process))
	case a.Verb == scenario.VerbRefuse:
		return strings.TrimSpace("requests " + processTarget(a.Process))
	case a.Verb == scenario.VerbCredential:
		return strings.TrimSpace("credential " + a.Process.Node)
	case a.Verb == scenario.VerbWatches:
		return strings.TrimSpace("apiserver " + a.Process.Node)
	case a.Process.Role != "":
		return "process " + processTarget(a.Process)
	case a.Verb == scenario.VerbLink:
		return strings.TrimSpace(fmt.Sprintf("link %s to %s %s", a.Link.From, a.Link.To, a.Link.Node))
	}
	return ""
}

func pluginTarget(s scenario.Selector, nodes []string) string {
	switch {
	case s.Node != "" && s.KeyID != "":
		return s.Node + "/" + s.KeyID
	case s.Node != "":
		return s.Node + "/*"
	case s.KeyID != "":
		return strings.Join(nodes, "/"+s.KeyID+", ") + "/" + s.KeyID
	default:
		return scenario.NodeAll
	}
}

func processTarget(s scenario.Selector) string {
	var parts []string
	for _, p := range []string{s.Role, s.Node, s.KeyID, s.Instance} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

// shownParams are the parameters as a person writes them.
func shownParams(a scenario.Action) map[string]any {
	out := map[string]any{}
	for name, value := range a.Params {
		switch v := value.(type) {
		case time.Duration:
			out[name] = v.String()
		case map[string]time.Duration:
			texts := map[string]string{}
			for node, d := range v {
				texts[node] = d.String()
			}
			out[name] = texts
		default:
			out[name] = v
		}
	}
	for name, value := range map[string]string{"fault": a.Fault, "method": a.Method} {
		if value != "" {
			out[name] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
