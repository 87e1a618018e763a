package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Nodes implements operator.Executor. A plugin that has crashed is there all the same: it is the pod's, and the kubelet's to start again.
func (p inPlace) Nodes(ctx context.Context) (map[string]core.Node, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := p.e.operated.comes() // before the others: whoever comes is in one of the two
	for _, n := range p.e.nodes() {
		all.Go(func() {
			seen := p.look(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			out[n.Name] = seen
		})
	}
	all.Wait()
	return out, ctx.Err()
}

// askEvery is how often an API server is asked at most: as often as it looks for a new file.
const askEvery = 500 * time.Millisecond

func (p inPlace) look(ctx context.Context, n *Node) core.Node {
	unavailable := p.e.operated.present(n) != nil
	up := !unavailable && n.Server.Status().Phase == Running && p.askLoaded(ctx, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.all[n.Name]
	p.seen[n.Name] = pod
	if pod == nil { // it has just been removed
		return core.Node{Unavailable: true, Since: n.since}
	}
	return core.Node{Up: up, Unavailable: unavailable, Since: n.since, Loaded: pod.inForce.revision, Plugins: maps.Clone(pod.plugins), Waiting: maps.Clone(pod.waiting),
		Reporter: slices.Clone(pod.sockets)}
}

// askLoaded sees to it that what an API server has in force is known, and says whether it is. Its metrics are long, and no file is unloaded
// by itself, so it is asked until it names the newest one.
func (p inPlace) askLoaded(ctx context.Context, n *Node) bool {
	pid := n.Server.Status().PID
	p.mu.Lock()
	pod := p.all[n.Name]
	if pod == nil {
		p.mu.Unlock()
		return false
	}
	settled, recent, answers := pod.configured == "" || pod.pid == pid, time.Since(pod.asked) < askEvery, pod.answers
	p.mu.Unlock()
	switch {
	case settled:
		return true
	case recent:
		return answers
	}
	hash, err := n.loadedConfig(ctx)
	p.names(n.Name, hash, pid, err == nil)
	return err == nil
}

// names notes what an API server says that it has in force. What nobody has rolled out is what it began with.
func (p inPlace) names(node, hash string, pid int, answers bool) {
	p.mu.Lock()
	pod := p.all[node]
	if pod == nil {
		p.mu.Unlock()
		return
	}
	pod.asked, pod.answers = time.Now(), answers
	file, known := pod.files[hash]
	if known {
		pod.inForce = file
	}
	news := known && hash == pod.configured && pod.pid != pid
	if news {
		pod.pid = pid
	}
	p.mu.Unlock()
	if news {
		p.e.record(&history.Encryption{Node: node, State: history.EncryptionLoaded, Providers: file.providers})
	}
}
