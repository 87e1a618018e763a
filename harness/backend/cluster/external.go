package cluster

import (
	"context"
	"errors"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// errNone is the answer to what such a cluster does not have. Scenarios that need it are not supported.
var errNone = errors.New("not in a cluster that the harness did not make")

// external is the part of live.ControlPlane that belongs to the cluster: the harness neither controls nor reads it.
type external struct{}

// Etcd implements live.ControlPlane, and so do the others.
func (external) Etcd(string) ([]live.Target, error)               { return nil, errNone }
func (external) ReadEtcd(context.Context, string) ([]byte, error) { return nil, errNone }
func (external) RangeEtcd(context.Context, live.Range) ([]live.KeyValue, bool, error) {
	return nil, false, errNone
}
func (external) TryPlugin(context.Context, string) (*live.Plugin, error) { return nil, errNone }
func (external) LoadBalancer() live.Unit                                 { return foreign{} }

// NodeUnit implements live.ControlPlane.
func (external) NodeUnit(string, []*live.Node, func(*live.Target)) live.Unit { return foreign{} }

// RestartContainer implements live.ControlPlane.
func (external) RestartContainer(context.Context, live.Target, func(*live.Target)) error {
	return errNone
}

// Isolate implements live.ControlPlane: only the node's own reporter uses its connection to the API server.
func (external) Isolate(context.Context, *live.Node) error { return nil }

// Collect implements live.ControlPlane: there is nothing beyond objects and logs.
func (external) Collect(context.Context, string, func(string)) error { return nil }
