package kind

import (
	"context"
	"errors"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

var errNoNodeChange = errors.New("kubeadm join and the removal of etcd members are not part of this version")

// AddNode implements live.Plane.
func (p *plane) AddNode(context.Context, string, []string, bool) (*live.Node, error) {
	return nil, errNoNodeChange
}

// Isolate implements live.Plane.
func (p *plane) Isolate(context.Context, *live.Node) error { return errNoNodeChange }

// RemoveNode implements live.Plane.
func (p *plane) RemoveNode(context.Context, *live.Node) error { return errNoNodeChange }
