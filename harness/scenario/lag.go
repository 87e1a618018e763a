package scenario

import (
	"fmt"
	"maps"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
)

// Lag is how much later than at once something happens: on all nodes, or on each node of its own.
type Lag struct {
	All   Duration
	Nodes map[string]Duration
}

// Of is the lag on a node, of a resolved action.
func (l Lag) Of(node string) time.Duration {
	if d, ok := l.Nodes[node]; ok {
		return d.Value()
	}
	return l.All.Value()
}

func (l Lag) IsZero() bool { return l.Nodes == nil && l.All.IsZero() }

// MarshalYAML implements yaml.Marshaler.
func (l Lag) MarshalYAML() (any, error) { return l.param(), nil }

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Lag) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		return n.Decode(&l.Nodes)
	}
	return n.Decode(&l.All)
}

func (l Lag) param() any {
	if l.Nodes == nil {
		return l.All.String()
	}
	texts := map[string]string{}
	for node, d := range l.Nodes {
		texts[node] = d.String()
	}
	return texts
}

func (l *Lag) resolve(t contract.Timing) error {
	nodes := maps.Clone(l.Nodes)
	for node, d := range nodes {
		if err := d.resolve(t); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		nodes[node] = d
	}
	l.Nodes = nodes
	return l.All.resolve(t)
}

func (l *Lag) rename(name func(string) string) {
	if l.Nodes == nil {
		return
	}
	nodes := map[string]Duration{}
	for node, d := range l.Nodes {
		nodes[name(node)] = d
	}
	l.Nodes = nodes
}
