package reconcile

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// Target of a write, as the metrics label it.
type Target string

const (
	TargetRollups Target = "rollup"           // Server-Side Apply to the status of the CR
	TargetRemoval Target = "cleanup"          // JSON patch of the status of the CR
	TargetUnion   Target = "clusteroperator"  // Server-Side Apply to the status of the ClusterOperator
	TargetHealth  Target = "encryptionhealth" // update of the status of the EncryptionHealth
)

// Request is one write under the aggregator's field manager, to the status subresource; an apply is forced.
type Request struct {
	Target Target
	Body   []byte
	// Conditions of an apply, and Removal of a removal, are what Body says.
	Conditions []core.Condition
	Removal    core.Removal
}

// applyConfiguration is an apply of conditions, its fields in the order in which those of a map are encoded.
type applyConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	LastTransitionTime string `json:"lastTransitionTime"`
	Message            string `json:"message"`
	Reason             string `json:"reason"`
	Status             string `json:"status"`
	Type               string `json:"type"`
}

// applied puts conditions on the status of a target. It has all conditions of the field manager, because one that is
// left out would be removed.
func applied(target Target, op core.Operator, conditions []core.Condition) (Request, error) {
	a := applyConfiguration{APIVersion: core.OperatorGroup + "/" + core.OperatorVersion, Kind: op.Kind}
	a.Metadata.Name = core.OperatorObject
	if target == TargetUnion {
		a.APIVersion, a.Kind, a.Metadata.Name = core.ConfigGroup+"/"+core.ConfigVersion, "ClusterOperator", op.ClusterOperator
	}
	a.Status.Conditions = make([]condition, len(conditions))
	for i, c := range conditions {
		a.Status.Conditions[i] = condition{c.LastTransitionTime.UTC().Format(time.RFC3339), c.Message, c.Reason, c.Status, c.Type}
	}
	body, err := json.Marshal(a)
	if err != nil {
		return Request{}, fmt.Errorf("encode the conditions of %s: %w", a.Kind, err)
	}
	return Request{Target: target, Body: body, Conditions: conditions}, nil
}

// removal has no body when there is nothing left to remove from cr.
func removal(cr map[string]any, op core.Operator, r core.Removal) (Request, error) {
	ops := core.RemovalPatch(cr, op, r)
	if len(ops) == 0 {
		return Request{}, nil
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return Request{}, fmt.Errorf("encode the removal of %v %v: %w", r.Nodes, r.Conditions, err)
	}
	return Request{Target: TargetRemoval, Body: body, Removal: r}, nil
}
