package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Nodes implements operand.Pods. A plugin that has crashed is there all the same: it is the pod's, and the kubelet's to start again.
func (p *pods) Nodes(ctx context.Context) (map[string]operand.Node, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := p.e.operated.comes() // before the others: a node that joins meanwhile is in one of the two
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

func (p *pods) look(ctx context.Context, n *cluster.Node) operand.Node {
	unavailable := p.e.operated.present(n) != nil
	up := !unavailable && n.Server.Status().Phase == cluster.Running && p.askLoaded(ctx, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.all[n.Name]
	if pod == nil { // it has just been removed
		return operand.Node{Unavailable: true}
	}
	return operand.Node{Up: up, Unavailable: unavailable, Plugins: slices.Sorted(maps.Keys(pod.plugins)), Waiting: maps.Clone(pod.waiting)}
}

// askLoaded sees to it that what an API server has in force is known, and says whether it is. Its metrics are long, and no file is unloaded
// by itself, so it is asked until it names the newest one.
func (p *pods) askLoaded(ctx context.Context, n *cluster.Node) bool {
	pid := n.Server.Status().PID
	p.mu.Lock()
	pod := p.all[n.Name]
	if pod == nil {
		p.mu.Unlock()
		return false
	}
	settled, recent, answers := pod.settled(pid), time.Since(pod.asked) < askEvery, pod.answers
	p.mu.Unlock()
	switch {
	case settled:
		return true
	case recent:
		return answers
	}
	hash, err := n.LoadedConfig(ctx)
	p.names(n.Name, hash, pid, err == nil)
	return err == nil
}

// settled reports whether a process is known to have the newest file in force.
func (pod *pod) settled(pid int) bool { return pod.configured == "" || pod.pid == pid }

// loads reports whether the API server of a node has its newest file in force.
func (p *podStates) loads(n *cluster.Node) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(n.Name).settled(n.Server.Status().PID)
}

// names notes what an API server says that it has in force. What nobody has rolled out is what it began with.
func (p *pods) names(node, hash string, pid int, answers bool) {
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
