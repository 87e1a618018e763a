package live

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// reloadMetric names the configuration that an API server has loaded, by the SHA-256 of its file. It is a
// metric of kube-apiserver's controller of the EncryptionConfiguration, and tells from outside which file is in force.
const reloadMetric = "apiserver_encryption_config_controller_last_config_info{"

// awaitReload returns when the API servers of the nodes have loaded the configuration that was written last. One that
// rejects it (a new provider whose plugin is dead) keeps the old one, says so in its log only, and runs into the bound.
// One that is down is not waited for: it reads the newest file when it starts.
func (sw *encryptionSwitch) awaitReload(ctx context.Context, nodes []*Node) error {
	if sw.e.opts.AwaitOne {
		nodes = nodes[:min(1, len(nodes))]
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error { return sw.awaitNode(ctx, n) })
	}
	return group.Wait()
}

func (sw *encryptionSwitch) awaitNode(ctx context.Context, n *Node) error {
	wanted := func() string {
		if !n.Server.Status().Running() {
			return ""
		}
		return sw.pending(n).hash
	}
	return n.awaitConfig(ctx, wanted, func(hash string) { sw.loaded(n, hash) }) // it may have been told something else meanwhile
}

// awaitConfig returns when the API server of a node has loaded the wanted configuration, by its hash. wanted is read in
// each round, since the file may be replaced meanwhile; an empty hash ends the wait.
func (n *Node) awaitConfig(ctx context.Context, wanted func() (hash string), has func(hash string)) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for {
		hash := wanted()
		if hash == "" {
			return nil
		}
		loaded, err := n.loadedConfig(ctx)
		if err == nil && loaded == hash {
			has(hash)
			continue
		}
		if poll.Pause(ctx, reloadPoll) != nil {
			return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v (it names %q, %v): see its log", n.Name, reloadTimeout, loaded, err)
		}
	}
}

// AwaitConfig returns when the API server of a node has loaded a configuration, by the hash that SetEncryption gave. It is an error if the context
// ends before.
func (n *Node) AwaitConfig(ctx context.Context, hash string) error {
	return n.awaitConfig(ctx, func() string { return hash }, func(string) { hash = "" })
}

// reload is a configuration that an API server was given and has not named in its metric yet.
type reload struct {
	hash      string
	providers []string
}

// pending returns an empty reload if an API server has loaded what it was given.
func (sw *encryptionSwitch) pending(n *Node) reload {
	sw.e.mu.Lock()
	defer sw.e.mu.Unlock()
	return sw.e.reloads[n.Name]
}

func (sw *encryptionSwitch) loaded(n *Node, hash string) {
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

func (n *Node) loadedConfig(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	metrics, err := n.direct().Get(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(metrics)) {
		if hash, ok := hashOf(line); ok {
			return hash, nil
		}
	}
	return "", nil
}

// hashOf reads the hash out of a line of the metrics, if it is that metric's.
func hashOf(line string) (hash string, ok bool) {
	labels, ok := strings.CutPrefix(line, reloadMetric)
	if !ok {
		return "", false
	}
	_, hash, _ = strings.Cut(labels, `,hash="`)
	hash, _, _ = strings.Cut(hash, `"`)
	return hash, true
}
