package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/history"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// controlPlaneNode is the Node object of a control-plane node. Nobody runs a kubelet for it.
func controlPlaneNode(name string) *unstructured.Unstructured {
	n := cluster.NewObject("v1", "Node", name, nil)
	n.SetLabels(map[string]string{"node-role.kubernetes.io/control-plane": "", operand.LabelMaster: "", "kubernetes.io/hostname": name})
	return n
}

// ConfigureEncryption sets the type in the cluster's APIServer configuration.
func ConfigureEncryption(ctx context.Context, c *cluster.Client, kind string) error {
	_, err := c.Resource(revision.Configurations()).Apply(ctx, core.OperatorObject, operand.APIServer(kind), metav1.ApplyOptions{FieldManager: "kmsharness", Force: true})
	if err != nil {
		return fmt.Errorf("set the cluster's encryption type to %s: %w", kind, err)
	}
	return nil
}

// NodeSince says since when a node is expected to report: since its Node object exists, in whole seconds. It creates the object unless a kubelet has.
func NodeSince(ctx context.Context, c *cluster.Client, name string, real bool) (time.Time, error) {
	if real {
		n, err := c.Resource(cluster.NodeObjects()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, fmt.Errorf("read Node %s: %w", name, err)
		}
		return n.GetCreationTimestamp().UTC(), nil
	}
	created, err := c.Recreate(ctx, cluster.NodeObjects(), controlPlaneNode(name))
	if err != nil {
		return time.Time{}, err
	}
	return created.GetCreationTimestamp().UTC(), nil
}

// Put creates an object of a scenario, or replaces one that is there.
func Put(ctx context.Context, c *cluster.Client, r schema.GroupVersionResource, o *unstructured.Unstructured, there bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	objects := c.Resource(r).Namespace(cluster.DataNamespace)
	if there {
		_, err = objects.Update(ctx, o, metav1.UpdateOptions{})
		return err
	}
	_, err = objects.Create(ctx, o, metav1.CreateOptions{})
	return err
}

// RemoveData deletes what a scenario may have left beside the objects that are recreated: leases of aggregators and
// secrets.
func RemoveData(ctx context.Context, c *cluster.Client) error {
	err := c.Resource(cluster.LeaseObjects()).Namespace(manifests.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete leases: %w", err)
	}
	options := metav1.ListOptions{LabelSelector: cluster.DataLabel}
	for _, ns := range []string{cluster.DataNamespace, revision.Namespace} {
		err := c.Resource(cluster.SecretObjects()).Namespace(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete secrets in %s: %w", ns, err)
		}
	}
	return nil
}

// SetRules patches the rules of the roles of reporters and aggregators to what refusals leave of those in the manifests.
func SetRules(ctx context.Context, c *cluster.Client, installed manifests.Options, refusals []history.Refusal) error {
	objects, err := manifests.Objects(installed)
	if err != nil {
		return err
	}
	for _, o := range objects {
		kind := o.GetKind()
		if kind != "Role" && kind != "ClusterRole" {
			continue
		}
		patch, err := json.Marshal(cluster.Object{"rules": rulesLeft(o, refusals)})
		if err != nil {
			return fmt.Errorf("encode the rules of %s: %w", o.GetName(), err)
		}
		r := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
		if _, err := c.Resource(r).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("set the rules of %s: %w", o.GetName(), err)
		}
	}
	return nil
}

func rulesLeft(o *unstructured.Unstructured, refusals []history.Refusal) []any {
	out := []any{}
	rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		verbs, _, _ := unstructured.NestedSlice(fields, "verbs")
		verbs = slices.DeleteFunc(verbs, func(v any) bool {
			return slices.ContainsFunc(refusals, func(r history.Refusal) bool {
				return strings.HasPrefix(o.GetName(), "kms-health-"+r.Role) && (r.Verb == "" || r.Verb == v)
			})
		})
		if len(verbs) > 0 {
			fields["verbs"] = verbs
			out = append(out, fields)
		}
	}
	return out
}
