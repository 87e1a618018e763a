package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// selectProcesses are the processes that a selector names, at this moment. None is an error that says what there is.
func (ps *processes) selectProcesses(ctx context.Context, s scenario.Selector) ([]cluster.Target, error) {
	switch s.Role {
	case history.RoleEtcd:
		return ps.e.controlPlane.Storage.Etcd(s.Node)
	case history.RoleLoadBalancer:
		return []cluster.Target{{Unit: ps.e.controlPlane.Network.LoadBalancer(), Identity: history.Process{Role: s.Role}}}, nil
	case history.RoleRemoteKMS:
		return []cluster.Target{ps.e.controlPlane.KMS.Target}, nil
	case history.RoleOperator:
		return ps.e.operated.operators()
	case history.RoleAggregator:
		return ps.selectAggregators(ctx, s.Instance)
	case history.RoleAPIServer, history.RolePlugin, history.RoleReporter:
		return ps.selectOnNodes(s)
	}
	return nil, fmt.Errorf("role %q: expected etcd, apiserver, plugin, reporter, aggregator, remote-kms or load-balancer", s.Role)
}

// selectOnNodes are processes of a role on the nodes that a selector names. A plugin that a selector names by a keyID must be there.
func (ps *processes) selectOnNodes(s scenario.Selector) ([]cluster.Target, error) {
	nodes, err := ps.selectReachable(s.Node, true, "")
	if err != nil {
		return nil, err
	}
	var targets []cluster.Target
	for _, n := range nodes {
		switch s.Role {
		case history.RoleAPIServer:
			targets = append(targets, n.ServerTarget())
		case history.RoleReporter:
			targets = append(targets, *n.Reporter())
		default:
			for _, g := range n.Plugins() {
				if s.KeyID == "" || s.KeyID == g.KeyID {
					targets = append(targets, g.Target)
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
func (ps *processes) selectNodes(word string, lingering bool) ([]*cluster.Node, error) {
	if word == "" || word == scenario.NodeAll {
		return ps.e.nodes(), nil
	}
	n := ps.e.Nodes.Get(word)
	ps.e.mu.Lock()
	removed := ps.e.removed[word] != nil
	ps.e.mu.Unlock()
	if n == nil || removed && !lingering {
		return nil, fmt.Errorf("there is no node %q: there are %v", word, ps.e.nodeNames())
	}
	return []*cluster.Node{n}, nil
}

// selectReachable is selectNodes, and an error if the processes of a node are unavailable for another reason than except.
func (ps *processes) selectReachable(word string, lingering bool, except string) ([]*cluster.Node, error) {
	nodes, err := ps.selectNodes(word, lingering)
	if err != nil {
		return nil, err
	}
	return nodes, ps.reachable(nodes, except)
}

func (ps *processes) selectAggregators(ctx context.Context, instance string) ([]cluster.Target, error) {
	leader := 0
	switch instance {
	case "leader", "standby":
		var err error
		if leader, err = ps.leader(ctx); err != nil {
			return nil, err
		}
	}
	var targets []cluster.Target
	for _, a := range ps.e.aggregators {
		i := a.Identity.Instance
		if instance == "" || instance == "leader" && i == leader || instance == "standby" && i != leader || instance == strconv.Itoa(i) {
			targets = append(targets, *a)
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("there is no aggregator %q: there are %d", instance, len(ps.e.aggregators))
	}
	return targets, nil
}

// leader is the instance that holds the lease. An aggregator that competes with nobody leads without one.
func (ps *processes) leader(ctx context.Context) (int, error) {
	if len(ps.e.aggregators) == 1 {
		return 1, nil
	}
	c, err := ps.e.Nodes.Admin()
	if err != nil {
		return 0, fmt.Errorf("find the leader: %w", err)
	}
	leases, err := c.Resource(cluster.LeaseObjects()).Namespace(manifests.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("find the leader: %w", err)
	}
	for _, lease := range leases.Items {
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		for _, a := range ps.e.aggregators {
			if holder == leaseIdentity(a.Identity.Instance) {
				return a.Identity.Instance, nil
			}
		}
	}
	return 0, errors.New("no aggregator holds a lease in namespace " + manifests.Namespace + " under the identity {instance} that it was given")
}
