package live

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/record/canary"
)

// Canaries write twice a second: six writes on three nodes, beside dozens of the cluster itself. One that takes as long as a
// reporter would wait is as good as none.
const canaryEvery = 500 * time.Millisecond

// canary records when the API server of a node cannot write.
func (r *recorder) canary(n *Node, c *Client) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.canaries[n.Name] = cancel
	r.mu.Unlock()
	name := "kmsharness-canary-" + n.Name
	namespace := r.controlPlane.Traits().canaries()
	write := func(ctx context.Context) error {
		o := newObject("v1", "ConfigMap", name, object{"data": object{"at": time.Now().UTC().Format(time.RFC3339Nano)}})
		_, err := c.Resource(configMapObjects()).Namespace(namespace).Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "kmsharness-canary", Force: true})
		return err
	}
	one := &canary.Canary{Sink: r.sink, Node: n.Name, Write: write, Timeout: r.controlPlane.Traits().Timing.WriteTimeout, Now: time.Now}
	r.wg.Go(func() {
		ticker := time.NewTicker(canaryEvery)
		defer ticker.Stop()
		one.Run(ctx, ticker.C)
	})
}

func configMapObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}
