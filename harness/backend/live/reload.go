package live

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// awaitReload returns when the API servers of the nodes have loaded the configuration that was written last. One that
// rejects it (a new provider whose plugin is dead) keeps the old one, says so in its log only, and runs into the bound.
// One that is down is not waited for: it reads the newest file when it starts.
func (sw *encryptionSwitch) awaitReload(ctx context.Context, nodes []*cluster.Node) error {
	if sw.e.opts.AwaitOne {
		nodes = nodes[:min(1, len(nodes))]
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error { return sw.awaitNode(ctx, n) })
	}
	return group.Wait()
}

func (sw *encryptionSwitch) awaitNode(ctx context.Context, n *cluster.Node) error {
	wanted := func() string {
		if !n.Server.Status().Running() {
			return ""
		}
		return sw.pending(n).hash
	}
	return n.AwaitConfigThat(ctx, wanted, func(hash string) { sw.loaded(n, hash) }) // it may have been told something else meanwhile
}

// reload is a configuration that an API server was given and has not named in its metric yet.
type reload struct {
	hash      string
	providers []string
}

// pending returns an empty reload if an API server has loaded what it was given.
func (sw *encryptionSwitch) pending(n *cluster.Node) reload {
	sw.e.mu.Lock()
	defer sw.e.mu.Unlock()
	return sw.e.reloads[n.Name]
}

func (sw *encryptionSwitch) loaded(n *cluster.Node, hash string) {
	sw.e.mu.Lock()
	pending := sw.e.reloads[n.Name]
	if pending.hash == hash {
		delete(sw.e.reloads, n.Name)
	}
	sw.e.mu.Unlock()
	if pending.hash == hash {
		sw.e.record(&history.Encryption{Node: n.Name, State: history.EncryptionLoaded, Providers: pending.providers})
	}
}
