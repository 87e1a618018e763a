package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
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

func healthObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}
}

func keyOf(r schema.GroupVersionResource, name string) objects.Key {
	return objects.Key{Resource: r, Name: name}
}

func leaseKey() objects.Key {
	return objects.Key{Resource: leases(), Namespace: "kms-health", Name: "kms-health-aggregator"}
}

func (o operator) crKey() objects.Key { return keyOf(o.gvr(), core.OperatorObject) }
func (o operator) coKey() objects.Key { return keyOf(clusterOperators(), o.core.ClusterOperator) }

func (w *world) crKey() objects.Key       { return w.operator.crKey() }
func (c *cluster) configKey() objects.Key { return keyOf(apiServerConfigs(), core.OperatorObject) }

// observed says whether states of a resource and all writes to it are recorded.
func (w *world) observed(r schema.GroupVersionResource) bool {
	return strings.HasSuffix(r.Group, "operator.openshift.io") || r == clusterOperators() || r == healthObjects()
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

func (c *cluster) create(r schema.GroupVersionResource, u *unstructured.Unstructured) error {
	if _, err := c.store.Create(c.k.Now(), r, u, "kmsharness"); err != nil {
		return fmt.Errorf("create %s %s: %w", r.Resource, u.GetName(), err)
	}
	return nil
}

// populate creates what a cluster holds before anybody reports.
func (c *cluster) populate() error {
	if err := c.main.populateOperator(); err != nil {
		return err
	}
	if err := c.create(apiServerConfigs(), operated.APIServer(string(c.initially))); err != nil {
		return err
	}
	for _, f := range c.aggregated {
		if err := f.populateOperator(); err != nil {
			return err
		}
	}
	return nil
}

// populateOperator creates what an operator begins with.
func (w *world) populateOperator() error {
	o := w.operator.core
	cr := newObject("operator.openshift.io/v1", o.Kind, core.OperatorObject, map[string]any{"spec": map[string]any{"managementState": "Managed"}})
	if err := w.create(w.operator.gvr(), cr); err != nil {
		return err
	}
	if w.connectivity == history.ConnectStream {
		health := newObject(contract.HealthGroup+"/"+contract.HealthVersion, contract.HealthKind, o.Name, map[string]any{"spec": map[string]any{}})
		if err := w.create(healthObjects(), health); err != nil {
			return err
		}
	}
	co := newObject("config.openshift.io/v1", "ClusterOperator", o.ClusterOperator, map[string]any{"spec": map[string]any{}})
	return w.create(clusterOperators(), co)
}

// nodeObject is the Node object of a control-plane node.
func nodeObject(name string) *unstructured.Unstructured {
	u := newObject("v1", "Node", name, nil)
	u.SetLabels(map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": name})
	return u
}
