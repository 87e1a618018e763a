package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
)

// write sends one request of a pass, and remembers what the API server returned.
func (c *Controller) write(ctx context.Context, r reconcile.Request, t *term) error {
	ctx, cancel := context.WithTimeout(ctx, reconcile.RequestTimeout)
	defer cancel()
	if r.Target == reconcile.TargetHealth {
		return c.writeHealth(ctx, r)
	}
	on, gvr := c.cr, operatorGVR(c.Operator)
	kind, options := types.ApplyPatchType, metav1.PatchOptions{FieldManager: contract.AggregatorFieldManager}
	switch r.Target {
	case reconcile.TargetRollups:
		first := r.Conditions[0]
		c.Log.Info("rollup changes", "degraded", first.Status, "reason", first.Reason, "message", first.Message)
	case reconcile.TargetRemoval:
		kind = types.JSONPatchType
		if t != nil {
			t.removing.Lock()
			defer t.removing.Unlock()
		}
	case reconcile.TargetUnion:
		on, gvr = c.operator, clusterOperatorGVR()
	}
	if kind == types.ApplyPatchType {
		force := true
		options.Force = &force
	}
	result, err := c.client.Resource(gvr).Patch(ctx, on.key, kind, r.Body, options, "status")
	c.metrics.wrote(string(r.Target), err)
	if err != nil {
		return fmt.Errorf("%s: patch the status of %s/%s: %w", r.Target, gvr.Resource, on.key, err)
	}
	on.saw(result)
	if r.Target == reconcile.TargetRemoval {
		c.metrics.cleaned(len(r.Removal.Nodes))
		c.Log.Info("removed from the operator's CR", "reportsOf", r.Removal.Nodes, "conditions", r.Removal.Conditions)
	}
	return nil
}

// writeHealth replaces the status of the EncryptionHealth.
func (c *Controller) writeHealth(ctx context.Context, r reconcile.Request) error {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(r.Body); err != nil {
		return fmt.Errorf("%s: %w", r.Target, err)
	}
	result, err := c.health.resource.UpdateStatus(ctx, &object, metav1.UpdateOptions{FieldManager: contract.AggregatorFieldManager})
	c.metrics.wrote(string(r.Target), err)
	if err != nil {
		return fmt.Errorf("update the status of %s/%s: %w", contract.HealthResource, c.health.key, err)
	}
	c.health.saw(result)
	return nil
}
