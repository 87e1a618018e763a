package engine

import (
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// resolveAction puts the drawn node in for "any", nothing for "all", and durations in for their texts.
func (r *run) resolveAction(a scenario.Action) (scenario.Action, error) {
	a = scenario.RenameNodes(a, r.node)
	resolved, err := scenario.Resolve(a, r.metadata.Timing, r.opts.Faults)
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
