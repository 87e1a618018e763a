package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// The targets of a write, as they are labelled in the metrics.
const (
	targetRollup          = "rollup"
	targetCleanup         = "cleanup"
	targetClusterOperator = "clusteroperator"
)

func (c *Controller) writeRollups(ctx context.Context, conditions []core.Condition) error {
	c.Log.Info("rollup changes", "degraded", conditions[0].Status, "reason", conditions[0].Reason, "message", conditions[0].Message)
	kind := schema.GroupVersionKind{Group: core.OperatorGroup, Version: core.OperatorVersion, Kind: c.Operator.Kind}
	return c.apply(ctx, targetRollup, operatorGVR(c.Operator), kind, c.cr, conditions)
}

func (c *Controller) writeUnion(ctx context.Context, conditions []core.Condition) error {
	kind := schema.GroupVersionKind{Group: configGroup, Version: "v1", Kind: "ClusterOperator"}
	return c.apply(ctx, targetClusterOperator, clusterOperatorGVR(), kind, c.operator, conditions)
}

// apply puts conditions on an object's status by Server-Side Apply. It sends all conditions of the manager, because
// one that is left out would be removed.
func (c *Controller) apply(ctx context.Context, target string, gvr schema.GroupVersionResource, kind schema.GroupVersionKind, on *object, conditions []core.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: contract.AggregatorFieldManager, Force: true}
	result, err := c.client.Resource(gvr).ApplyStatus(ctx, on.key, applied(kind, on.key, conditions), options)
	c.metrics.wrote(target, err)
	if err != nil {
		return fmt.Errorf("apply conditions to %s/%s: %w", gvr.Resource, on.key, err)
	}
	on.saw(result)
	return nil
}

func applied(kind schema.GroupVersionKind, name string, conditions []core.Condition) *unstructured.Unstructured {
	items := make([]any, len(conditions))
	for i, cond := range conditions {
		items[i] = map[string]any{
			"type": cond.Type, "status": cond.Status, "reason": cond.Reason, "message": cond.Message,
			"lastTransitionTime": cond.LastTransitionTime.UTC().Format(time.RFC3339),
		}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": items}}}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	return o
}

// remove carries out a removal on the newest known version of the CR.
func (c *Controller) remove(ctx context.Context, r core.Removal) error {
	cr := c.cr.latest()
	if cr == nil {
		return nil
	}
	ops := core.RemovalPatch(cr.Object, c.Operator, r)
	if len(ops) == 0 {
		return nil
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("encode removal: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: contract.AggregatorFieldManager}
	result, err := c.client.Resource(operatorGVR(c.Operator)).Patch(ctx, c.cr.key, types.JSONPatchType, patch, options, "status")
	c.metrics.wrote(targetCleanup, err)
	if err != nil {
		return fmt.Errorf("remove %v %v from %s: %w", r.Nodes, r.Conditions, c.Operator.Resource, err)
	}
	c.metrics.cleaned(len(r.Nodes))
	c.cr.saw(result)
	c.Log.Info("removed from the operator's CR", "reportsOf", r.Nodes, "conditions", r.Conditions)
	return nil
}
