package live

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// operator is where one operator's health goes.
type operator struct {
	flag            string // on the command lines of reporter and aggregator
	kind            string
	resource        schema.GroupVersionResource
	clusterOperator string
}

const cluster = "cluster" // name of every operator CR and of the APIServer configuration

func operatorNamed(name string) (operator, error) {
	of := func(kind, plural, clusterOperator string) (operator, error) {
		return operator{operatorFlag(name), kind, schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: plural}, clusterOperator}, nil
	}
	switch name {
	case "", "kubeapiserver":
		return of("KubeAPIServer", "kubeapiservers", "kube-apiserver")
	case "openshiftapiserver":
		return of("OpenShiftAPIServer", "openshiftapiservers", "openshift-apiserver")
	case "authentication":
		return of("Authentication", "authentications", "authentication")
	}
	return operator{}, fmt.Errorf("operator %q: expected kubeapiserver, openshiftapiserver or authentication", name)
}

// operatorFlag is the name of the operator on the command lines of reporter and aggregator.
func operatorFlag(name string) string { return orDefault(name, "kubeapiserver") }

func (o operator) targets() []watch.Target {
	return []watch.Target{{GVR: o.resource, Name: cluster}, {GVR: clusterOperators(), Name: o.clusterOperator}}
}

func (o operator) streamedTargets() []watch.Target {
	return append(o.targets(), watch.Target{GVR: healthObjects(), Name: o.flag})
}

func healthObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}
}

func clusterOperators() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "clusteroperators"}
}

func apiServerConfigs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}
}

func nodeObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

func secretObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

func podObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func eventObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "events"}
}

func leaseObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}
