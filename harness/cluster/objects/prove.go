package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// proveAdmission returns when an API server keeps reporters to their own entries. It enforces an admission policy only
// some time after the policy was created, when its informers have it. Until then a scenario about security would pass
// writes that it expects to be denied. The proof is a dry run by a reporter of no node, which only the policy refuses.
// Reporters that stream may write nothing at all.
func proveAdmission(ctx context.Context, p *cluster.ControlPlane, n *cluster.Node, op cluster.Operator) error {
	if p.Traits.Streaming {
		return nil
	}
	config, err := p.Credentials.RESTConfig(contract.ReporterIdentity(""), []string{contract.ReporterGroup}, n.URL)
	if err != nil {
		return fmt.Errorf("credentials of a reporter: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of a reporter: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	status := cluster.NewObject("operator.openshift.io/v1", op.Kind, core.OperatorObject, cluster.Object{"status": cluster.Object{"conditions": []any{cluster.Object{
		"type": contract.ConditionType("proof"), "status": "True", "reason": contract.ReporterConditionReason, "message": "[]", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}})
	options := metav1.ApplyOptions{FieldManager: contract.FieldManager("proof"), Force: true, DryRun: []string{metav1.DryRunAll}}
	last := "no answer"
	err = wait.PollUntilContextCancel(ctx, policyPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(op.Resource).ApplyStatus(ctx, core.OperatorObject, status, options)
		switch {
		case err == nil:
			last = "the write was accepted"
		case ctx.Err() == nil:
			last = err.Error()
		}
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server of %s refuses the write of a reporter of no node, by the admission policy for %s: %w; its last answer: %s", n.Name, op.Resource.Resource, err, last)
	}
	return nil
}

// A new policy is enforced within a second, on a busy machine within some. policyPoll is small against that.
const (
	policyPoll    = 50 * time.Millisecond
	policyTimeout = 20 * time.Second
)

// prove shows that an API server is ready, its plugins included (/readyz checks the KMS providers), and that it
// encrypts: it writes and deletes an object.
func prove(ctx context.Context, n *cluster.Node, o cluster.Encrypted) error {
	if n.Server.Status().Phase != cluster.Running {
		return fmt.Errorf("the API server of %s does not run", n.Name)
	}
	ready, cancel := context.WithTimeout(ctx, cluster.ReadyGrace)
	defer cancel()
	if err := n.Server.Ready(ready); err != nil {
		return err
	}
	if err := writeProof(ctx, n, o); err != nil {
		return fmt.Errorf("write a %s through the API server of %s: %w", o.Kind, n.Name, err)
	}
	return nil
}

func writeProof(ctx context.Context, n *cluster.Node, o cluster.Encrypted) error {
	name := "proof-" + n.Name
	if err := n.Admin.Remove(ctx, o.Resource, cluster.DataNamespace, name); err != nil {
		return err
	}
	if err := Put(ctx, n.Admin, o.Resource, o.Object(name, []byte("proof")), false); err != nil {
		return err
	}
	return n.Admin.Remove(ctx, o.Resource, cluster.DataNamespace, name)
}

// proveAggregated waits for the aggregation layer. A kube-apiserver that has just got an APIService answers with
// an error until its controllers have found the service available.
func proveAggregated(ctx context.Context, n *cluster.Node, o cluster.Encrypted) error {
	ready, cancel := context.WithTimeout(ctx, cluster.ReadyGrace)
	defer cancel()
	if err := n.Server.Ready(ready); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	for {
		err := writeProof(ctx, n, o)
		if err == nil {
			return nil
		}
		if apierrors.IsInvalid(err) || poll.Pause(ctx, cluster.ReloadPoll) != nil {
			return fmt.Errorf("write a %s through the aggregation layer: %w", o.Kind, err)
		}
	}
}
