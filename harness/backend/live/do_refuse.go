package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// UnsupportedRefusals says why a scenario's refusals and watches cannot be had from real API servers; nothing if they can. What takes away a
// permission is real; a proxy that ends TLS and answers in an API server's place would be tested with it.
func UnsupportedRefusals(s *scenario.Scenario) (lacks []string) {
	for _, a := range s.Actions() {
		r, ok := a.(*scenario.Refuse)
		switch {
		case !ok || r.Mode == history.RefuseRestore:
		case r.Role == history.RoleOperator || r.Object != "":
			lacks = append(lacks, "refuse an operator, which has the rights of an administrator, or writes of one object")
		case r.Mode != history.RefuseForbidden:
			lacks = append(lacks, "refuse with mode "+r.Mode+": real API servers are only made to answer with 403, by their roles")
		case r.Node != "" && r.Node != scenario.NodeAll:
			lacks = append(lacks, "refuse at one API server: roles are those of the cluster")
		case r.Role != history.RoleAggregator && s.Topology.Connectivity == history.ConnectStream:
			lacks = append(lacks, "refuse reporters that stream: they have no rights in the API that could be taken away")
		case r.Count != 0 || !r.For.IsZero():
			lacks = append(lacks, "refuse with count or for: roles do not count; mode restore gives them back")
		case len(s.Topology.Aggregated()) > 0:
			lacks = append(lacks, "refuse with further API servers: the roles of one are taken away only")
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// refuse takes permissions away from the roles of reporters or aggregators, or gives them back. It is over when every API server knows.
func (fs *faults) refuse(ctx context.Context, a *scenario.Refuse) error {
	fs.e.changes.turn.Lock()
	defer fs.e.changes.turn.Unlock()
	if fs.e.controlPlane.Traits.Memory != nil {
		return fs.refuseInMemory(a)
	}
	role := a.Role
	refusal := history.Refusal{Role: role, Verb: a.Method, Mode: history.RefuseForbidden, Code: history.RefusalCode(history.RefuseForbidden)}
	if a.Mode != history.RefuseRestore {
		fs.e.record(&refusal) // before the first that is refused
		fs.refusals = append(fs.refusals, refusal)
		return fs.permit(ctx, refusal, false)
	}
	ended := []history.Refusal{}
	fs.refusals = slices.DeleteFunc(fs.refusals, func(r history.Refusal) bool {
		over := role == "" || r.Role == role
		if over {
			ended = append(ended, r)
		}
		return over
	})
	if err := fs.permit(ctx, refusal, true); err != nil {
		return err
	}
	for _, over := range ended {
		over.Over = true
		fs.e.record(&over)
	}
	return nil
}

// permit sets the rules of all roles by the refusals in force, and waits until every API server allows, or refuses, accordingly.
func (fs *faults) permit(ctx context.Context, refusal history.Refusal, allowed bool) error {
	c, err := fs.e.Nodes.Admin()
	if err != nil {
		return err
	}
	if err := objects.SetRules(ctx, c, fs.e.traits.Manifests(fs.e.operator.Name), fs.refusals); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range fs.e.Nodes.List() {
		for _, want := range fs.reviews(refusal) {
			group.Go(func() error { return awaitPermission(ctx, n, want, allowed) })
		}
	}
	return group.Wait()
}

// reviews ask about what a refusal changes: of each role one thing that it may do to the CR.
func (fs *faults) reviews(refusal history.Refusal) (out []cluster.Object) {
	verb := cmp.Or(refusal.Verb, "patch")
	if refusal.Role != history.RoleAggregator && slices.Contains([]string{"get", "patch"}, verb) {
		out = append(out, fs.review(contract.ReporterIdentity(fs.e.Nodes.List()[0].Name), verb, contract.ReporterGroup))
	}
	if refusal.Role != history.RoleReporter && slices.Contains([]string{"get", "list", "watch", "patch"}, verb) {
		out = append(out, fs.review(contract.AggregatorIdentity, verb))
	}
	return out
}

func (fs *faults) review(user, verb string, groups ...any) cluster.Object {
	of := cluster.Object{"group": fs.e.operator.Resource.Group, "resource": fs.e.operator.Resource.Resource, "name": core.OperatorObject, "verb": verb}
	if verb == "patch" {
		of["subresource"] = "status"
	}
	return cluster.Object{"user": user, "groups": groups, "resourceAttributes": of}
}

// awaitPermission asks an API server until it allows what a review is about, or no longer does.
func awaitPermission(ctx context.Context, n *cluster.Node, spec cluster.Object, allowed bool) error {
	if n.Server.Status().Phase != cluster.Running {
		return nil // it reads the roles when it starts
	}
	r := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	err := poll.Until(ctx, permissionPoll, func() (bool, error) {
		answer, err := n.Admin.Resource(r).Create(ctx, cluster.NewObject("authorization.k8s.io/v1", "SubjectAccessReview", "", cluster.Object{"spec": spec}), metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		now, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
		return now == allowed, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server of %s knows what %v may do (allowed: %v): %w", n.Name, spec["user"], allowed, err)
	}
	return nil
}

// permissionPoll is how often an API server is asked whether it has seen a changed role: its informers need some milliseconds.
const permissionPoll = 20 * time.Millisecond
