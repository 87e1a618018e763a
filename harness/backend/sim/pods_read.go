package sim

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/core"
)

// nodes are those that have a pod, and what is on them. A plugin that has crashed is there all the same: it is the pod's, and the kubelet's to
// start again.
func (p *pods) nodes() map[string]core.Node {
	out := map[string]core.Node{}
	for _, n := range p.e.nodes() {
		pod, unavailable := p.of(n.name), present(n) != nil
		up := !unavailable && n.server.runs()
		if up {
			p.poll(n, pod)
		}
		out[n.name] = core.Node{Up: up, Unavailable: unavailable, Since: n.since, Loaded: pod.inForce.revision, Plugins: maps.Clone(pod.plugins), Waiting: maps.Clone(pod.waiting),
			Reporter: slices.Clone(pod.sockets)}
	}
	p.coming(out)
	p.met()
	return out
}

// poll notes what an API server has in force. What nobody has rolled out is what it began with.
func (p *pods) poll(n *node, pod *pod) {
	newest, configured := pod.newest()
	if !configured || pod.incarnation == n.server.incarnation || n.server.envelope.loaded == nil {
		return
	}
	loaded := n.server.envelope.loaded.config
	for _, f := range pod.files { // of two that say the same the newer
		if slices.Equal(f.config, loaded) {
			pod.inForce = f
		}
	}
	if slices.Equal(newest.config, loaded) {
		pod.incarnation = n.server.incarnation
		p.record(n.name, history.EncryptionLoaded, loaded)
	}
}
