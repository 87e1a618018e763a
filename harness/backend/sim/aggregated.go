package sim

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// newAggregated is an API server beside kube-apiserver, with a pod on every node. Its reporters have no API server of their own node: they go
// through the load balancer.
func (c *cluster) newAggregated(name string, keyIDs []string) (*world, error) {
	stand, err := apiservers.StubOf(name)
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c, apiServer: name, connectivity: connectivityOfPods(c.main.connectivity), encrypts: encryptedBy(stand), keyIDs: keyIDs, secrets: map[string]*secret{}}
	if w.operator, err = operatorNamed(scenario.OperatorOf(name)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.aggregated = append(c.aggregated, w)
	for _, host := range c.main.nodes {
		n := newNode(w, host.name, keyIDs)
		n.host, host.alongside = host, append(host.alongside, n)
		w.addNode(n)
	}
	w.aggregators = []*aggregator{newAggregator(w, 1, 1)}
	return w, nil
}

// connectivityOfPods is how the reporters of aggregated API servers reach the API, whose kube-apiserver's do as given.
func connectivityOfPods(main string) string {
	if main == history.ConnectStream {
		return main
	}
	return history.ConnectService
}

// unsupportedWithAggregated is what cannot be done in a topology with further API servers; nothing in one without.
func unsupportedWithAggregated(s *scenario.Scenario) []string {
	if len(s.Topology.Aggregated()) == 0 {
		return nil
	}
	var lacks []string
	if s.Topology.Start == scenario.StartStopped {
		lacks = append(lacks, "start: stopped with further API servers: a real one ends where no kube-apiserver answers it, and nobody starts it again")
	}
	if s.Topology.Aggregators > 1 {
		lacks = append(lacks, "several aggregators with further API servers: one for each is run")
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return a.Verb() == scenario.VerbNode }) {
		lacks = append(lacks, "node with further API servers: their pods stay where they are")
	}
	return lacks
}

// called is an API server by its name, kube-apiserver by none as well; nil if there is none.
func (c *cluster) called(name string) *world {
	if name == "" || name == history.KubeAPIServer {
		return c.main
	}
	for _, f := range c.aggregated {
		if f.apiServer == name {
			return f
		}
	}
	return nil
}

// configured is the operator to whose CR a reporter or an aggregator is told to write.
func (w *world) configured(role string) operator {
	if w.hooks.Operator != nil {
		if other := w.called(w.hooks.Operator(role, w.apiServer)); other != nil {
			return other.operator
		}
	}
	return w.operator
}
