package live

import "context"

// watchContainers records what happens to the containers of a node, where it has any, until the node goes or the run is over.
func (r *recorder) watchContainers(n *Node) {
	if n.Containers == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.watches[n.Name] = cancel
	r.mu.Unlock()
	r.wg.Go(func() { n.Containers(ctx, r.sink) })
}
