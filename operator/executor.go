package operator

import (
	"context"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Executor is the pods of an API server, and what can be done to them. Its methods return when that is done, and may be called again.
type Executor interface {
	// Nodes are those that are expected to have a pod, and what is on them; reports are left out.
	Nodes(ctx context.Context) (map[string]core.Node, error)
	StartPlugins(ctx context.Context, node string, plugins []revision.Plugin) error
	StopPlugins(ctx context.Context, node string, keyIDs []uint64) error
	// Report starts the reporter anew with these sockets, or ends it without any.
	Report(ctx context.Context, node string, keyIDs []uint64) error
	// RollOut gives the API server a file, with sockets below contract.SocketDir. It does not wait until it is loaded.
	RollOut(ctx context.Context, node string, revision int, file []byte) error
	// Check starts a plugin on its own, checks it and stops it. The result is for hash; its time may be left out.
	Check(ctx context.Context, p config.Plugin, hash string) core.Preflight
	// Rewrite updates every encrypted object without a change, through the API. key is the one that API servers write with.
	Rewrite(ctx context.Context, key uint64) error
}
