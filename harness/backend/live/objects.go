package live

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/operator/revision"
)

type object = map[string]any

func newObject(apiVersion, kind, name string, more object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name}}}
	for k, v := range more {
		u.Object[k] = v
	}
	return u
}

// Resources, as the dynamic client knows them.
func nodeObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}
func secretObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}
func configMapObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("configmaps")
}
func namespaceObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}
func accountObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("serviceaccounts")
}
func podObjects() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }
func eventObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("events")
}
func leaseObjects() schema.GroupVersionResource {
	return coordinationv1.SchemeGroupVersion.WithResource("leases")
}
func clusterOperators() schema.GroupVersionResource {
	return configv1.GroupVersion.WithResource("clusteroperators")
}
func healthObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}
}

// controlPlaneNode is the Node object of a control-plane node. Nobody runs a kubelet for it.
func controlPlaneNode(name string) *unstructured.Unstructured {
	n := newObject("v1", "Node", name, nil)
	n.SetLabels(map[string]string{"node-role.kubernetes.io/control-plane": "", operand.LabelMaster: "", "kubernetes.io/hostname": name})
	return n
}

// recreate deletes an object, waits until it is gone, and creates it anew: with a new uid, no status and no history
// of field managers.
func (c *Client) recreate(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := c.remove(ctx, r, "", o.GetName()); err != nil {
		return nil, err
	}
	created, err := c.Resource(r).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s/%s: %w", r.GroupResource(), o.GetName(), err)
	}
	return created, nil
}

// remove deletes an object; one that is not there is no error. Objects of these kinds have no finalizers, so they are gone
// when the request is answered.
func (c *Client) remove(ctx context.Context, r schema.GroupVersionResource, namespace, name string) error {
	now := int64(0)
	err := c.Resource(r).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s/%s: %w", r.GroupResource(), name, err)
	}
	return nil
}

// RemoveNodeObject deletes a Node object, which may be gone.
func (c *Client) RemoveNodeObject(ctx context.Context, name string) error {
	return c.remove(ctx, nodeObjects(), "", name)
}

// configureEncryption sets the type in the cluster's APIServer configuration.
func (c *Client) configureEncryption(ctx context.Context, kind string) error {
	_, err := c.Resource(revision.Configurations()).Apply(ctx, cluster, operand.APIServer(kind), metav1.ApplyOptions{FieldManager: "kmsharness", Force: true})
	if err != nil {
		return fmt.Errorf("set the cluster's encryption type to %s: %w", kind, err)
	}
	return nil
}

// nodeSince says since when a node is expected to report: since its Node object exists, in whole seconds. It creates the object unless a kubelet has.
func (c *Client) nodeSince(ctx context.Context, name string, real bool) (time.Time, error) {
	if real {
		n, err := c.Resource(nodeObjects()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, fmt.Errorf("read Node %s: %w", name, err)
		}
		return n.GetCreationTimestamp().UTC(), nil
	}
	created, err := c.recreate(ctx, nodeObjects(), controlPlaneNode(name))
	if err != nil {
		return time.Time{}, err
	}
	return created.GetCreationTimestamp().UTC(), nil
}
