package live

import (
	"fmt"

	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// What actions of other modules use of an environment.
var _ scenario.Cluster = (*Environment)(nil)

// Client implements scenario.Cluster.
func (e *Environment) Client(node string) (dynamic.Interface, error) {
	if node == "" {
		return e.kube().Nodes.Admin()
	}
	n := e.kube().Nodes.Get(node)
	if n == nil {
		return nil, fmt.Errorf("there is no node %q: there are %v", node, e.Nodes())
	}
	return n.direct(), nil
}

// Record implements scenario.Cluster.
func (e *Environment) Record(payload any) { e.kube().record(payload) }
