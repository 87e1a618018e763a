package local

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func (e *Environment) selectProcesses(ctx context.Context, s scenario.Selector) ([]target, error) {
	switch s.Role {
	case history.RoleEtcd:
		return []target{{etcd{e.plane.cp.Etcd()}, history.Process{Role: s.Role}}}, nil
	case history.RoleRemoteKMS:
		return []target{{e.plane.kms.child, e.plane.kms.child.identity}}, nil
	case history.RoleAggregator:
		return e.selectAggregators(ctx, s.Instance)
	case history.RoleAPIServer, history.RolePlugin, history.RoleReporter:
		return e.selectOnNodes(s)
	}
	return nil, fmt.Errorf("role %q: expected etcd, apiserver, plugin, reporter, aggregator, remote-kms or load-balancer", s.Role)
}

func (e *Environment) selectOnNodes(s scenario.Selector) ([]target, error) {
	nodes, err := e.selectNodes(s.Node, true)
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, n := range nodes {
		switch s.Role {
		case history.RoleAPIServer:
			targets = append(targets, target{apiServer{n.server}, history.Process{Role: s.Role, Node: n.name}})
		case history.RoleReporter:
			r := n.reporterUnit()
			targets = append(targets, target{r, r.identity})
		default:
			for _, g := range n.pluginList() {
				if s.KeyID == "" || s.KeyID == g.keyID {
					targets = append(targets, target{g.child, g.identity})
				}
			}
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("there is no %s with keyID %q on node %q", s.Role, s.KeyID, s.Node)
	}
	return targets, nil
}

// selectNodes finds nodes by a selector's word: a name, or "all" or nothing for all. A removed node whose reporter
// lingers can be found by its name only.
func (e *Environment) selectNodes(word string, lingering bool) ([]*node, error) {
	if word == "" || word == scenario.NodeAll {
		return e.nodes(), nil
	}
	n := e.plane.node(word)
	e.mu.Lock()
	removed := e.removed[word] != nil
	e.mu.Unlock()
	if n == nil || removed && !lingering {
		return nil, fmt.Errorf("there is no node %q: there are %v", word, e.Nodes())
	}
	return []*node{n}, nil
}

func (e *Environment) selectAggregators(ctx context.Context, instance string) ([]target, error) {
	leader := 0
	switch instance {
	case "leader", "standby":
		var err error
		if leader, err = e.leader(ctx); err != nil {
			return nil, err
		}
	}
	var targets []target
	for _, a := range e.aggregators {
		i := a.identity.Instance
		if instance == "" || instance == "leader" && i == leader || instance == "standby" && i != leader || instance == strconv.Itoa(i) {
			targets = append(targets, target{a, a.identity})
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("there is no aggregator %q: there are %d", instance, len(e.aggregators))
	}
	return targets, nil
}

// leader is the instance that holds the lease. An aggregator that competes with nobody leads without one.
func (e *Environment) leader(ctx context.Context) (int, error) {
	if len(e.aggregators) == 1 {
		return 1, nil
	}
	c, err := e.plane.admin()
	if err != nil {
		return 0, fmt.Errorf("find the leader: %w", err)
	}
	leases, err := c.Resource(leaseObjects()).Namespace(manifests.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("find the leader: %w", err)
	}
	for _, lease := range leases.Items {
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		for _, a := range e.aggregators {
			if holder == leaseIdentity(a.identity.Instance) {
				return a.identity.Instance, nil
			}
		}
	}
	return 0, errors.New("no aggregator holds a lease in namespace " + manifests.Namespace + " under the identity {instance} that it was given")
}
