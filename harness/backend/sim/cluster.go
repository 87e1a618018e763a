package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// operator is whose CR carries the reports, as reporter and aggregator name it.
type operator struct {
	reporter publish.Operator
	core     core.Operator
}

func operatorNamed(name string) (operator, error) {
	if name == "" {
		name = string(publish.KubeAPIServer)
	}
	o, err := core.OperatorByName(name)
	return operator{publish.Operator(name), o}, err
}

func (o operator) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: core.OperatorGroup, Version: core.OperatorVersion, Resource: o.core.Resource}
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

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

func keyOf(r schema.GroupVersionResource, name string) objects.Key {
	return objects.Key{Resource: r, Name: name}
}

func leaseKey() objects.Key {
	return objects.Key{Resource: leases(), Namespace: "kms-health", Name: "kms-health-aggregator"}
}

func (w *world) crKey() objects.Key { return keyOf(w.operator.gvr(), core.OperatorObject) }
func (w *world) coKey() objects.Key {
	return keyOf(clusterOperators(), w.operator.core.ClusterOperator)
}
func (w *world) configKey() objects.Key { return keyOf(apiServerConfigs(), core.OperatorObject) }

// observed says whether states of a resource and all writes to it are recorded.
func (w *world) observed(r schema.GroupVersionResource) bool {
	return strings.HasSuffix(r.Group, "operator.openshift.io") || r == clusterOperators()
}

func newObject(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	for k, v := range more {
		u.Object[k] = v
	}
	return u
}

// encode is an object as it is sent.
func encode(u *unstructured.Unstructured) []byte {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return []byte("{}") // made of texts and numbers only
	}
	return text
}

// populate creates what a cluster holds before anybody reports.
func (w *world) populate() error {
	o := w.operator.core
	create := func(r schema.GroupVersionResource, u *unstructured.Unstructured) error {
		if _, err := w.store.Create(w.k.Now(), r, u, "kmsharness"); err != nil {
			return fmt.Errorf("create %s %s: %w", r.Resource, u.GetName(), err)
		}
		return nil
	}
	cr := newObject("operator.openshift.io/v1", o.Kind, core.OperatorObject, map[string]any{"spec": map[string]any{"managementState": "Managed"}})
	if err := create(w.operator.gvr(), cr); err != nil {
		return err
	}
	co := newObject("config.openshift.io/v1", "ClusterOperator", o.ClusterOperator, map[string]any{"spec": map[string]any{}})
	if err := create(clusterOperators(), co); err != nil {
		return err
	}
	return create(apiServerConfigs(), operated.APIServer(string(w.initially)))
}

// nodeObject is the Node object of a control-plane node.
func nodeObject(name string) *unstructured.Unstructured {
	u := newObject("v1", "Node", name, nil)
	u.SetLabels(map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": name})
	return u
}
