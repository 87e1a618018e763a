package cluster

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// Operator is where one operator's health goes.
type Operator struct {
	core.Operator
	Resource schema.GroupVersionResource
}

// OperatorNamed is that of a name; empty: the default one.
func OperatorNamed(name string) (Operator, error) {
	op, err := core.OperatorByName(OperatorFlag(name))
	return Operator{op, schema.GroupVersionResource{Group: core.OperatorGroup, Version: core.OperatorVersion, Resource: op.Resource}}, err
}

// Targets are the objects that are watched for it.
func (o Operator) Targets(streaming bool) []watch.Target {
	targets := []watch.Target{{GVR: o.Resource, Name: core.OperatorObject}, {GVR: ClusterOperators(), Name: o.ClusterOperator}}
	if streaming {
		targets = append(targets, watch.Target{GVR: HealthObjects(), Name: o.Name})
	}
	return targets
}

func ClusterOperators() schema.GroupVersionResource {
	return configv1.GroupVersion.WithResource("clusteroperators")
}
func HealthObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}
}
