package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditv1 "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// Client talks to one address under one identity, over connections of its own.
type Client struct {
	dynamic.Interface
	Metadata metadata.Interface
	URL      string
	HTTP     *http.Client
}

// NewClient talks to a server; it does not connect yet. Close it after use.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return audited{next} })
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{Interface: d, Metadata: m, URL: config.Host, HTTP: h}, nil
}

// audited sends the Audit-ID of a context.
type audited struct{ http.RoundTripper }

type auditIDKey struct{}

// WithAuditID gives requests an Audit-ID that a client chose.
func WithAuditID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, auditIDKey{}, id)
}

// RoundTrip implements http.RoundTripper.
func (a audited) RoundTrip(r *http.Request) (*http.Response, error) {
	if id, _ := r.Context().Value(auditIDKey{}).(string); id != "" {
		r = r.Clone(r.Context())
		r.Header.Set(auditv1.HeaderAuditID, id)
	}
	return a.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets idle connections be closed.
func (a audited) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

// NewAdmin is a client of a user who may do everything.
func NewAdmin(c Credentials, server string) (*Client, error) {
	config, err := adminConfig(c, server)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // sample-apiserver calls its first version deprecated
	return NewClient(config)
}

func adminConfig(c Credentials, server string) (*rest.Config, error) {
	return c.RESTConfig("kmsharness-admin", []string{"system:masters"}, server)
}

// Get reads a page.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	return controlplane.Get(ctx, c.HTTP, c.URL+path)
}

func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.HTTP.Transport) }

// Administrators is the namespace of the service account of reporters that are administrators: the admission policy is not about it.
const Administrators = "kmsharness-administrators"

// Ensure creates an object unless there is one of its name.
func (c *Client) Ensure(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) error {
	_, err := c.Resource(r).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s/%s: %w", r.GroupResource(), o.GetName(), err)
	}
	return nil
}

type Object = map[string]any

func NewObject(apiVersion, kind, name string, more Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: Object{"apiVersion": apiVersion, "kind": kind, "metadata": Object{"name": name}}}
	for k, v := range more {
		u.Object[k] = v
	}
	return u
}

// Resources, as the dynamic client knows them.
func NodeObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

func SecretObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}

func ConfigMapObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("configmaps")
}

func NamespaceObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

func AccountObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("serviceaccounts")
}

func PodObjects() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

func EventObjects() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("events")
}

func LeaseObjects() schema.GroupVersionResource {
	return coordinationv1.SchemeGroupVersion.WithResource("leases")
}

// Recreate deletes an object, waits until it is gone, and creates it anew: with a new uid, no status and no history
// of field managers.
func (c *Client) Recreate(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := c.Remove(ctx, r, "", o.GetName()); err != nil {
		return nil, err
	}
	created, err := c.Resource(r).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s/%s: %w", r.GroupResource(), o.GetName(), err)
	}
	return created, nil
}

// Remove deletes an object; one that is not there is no error. Objects of these kinds have no finalizers, so they are gone
// when the request is answered.
func (c *Client) Remove(ctx context.Context, r schema.GroupVersionResource, namespace, name string) error {
	now := int64(0)
	err := c.Resource(r).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s/%s: %w", r.GroupResource(), name, err)
	}
	return nil
}

// RemoveNodeObject deletes a Node object, which may be gone.
func (c *Client) RemoveNodeObject(ctx context.Context, name string) error {
	return c.Remove(ctx, NodeObjects(), "", name)
}

// OperatorFlag is the name of an operator on the command lines of reporter and aggregator; empty is the default one.
func OperatorFlag(name string) string { return cmp.Or(name, "kubeapiserver") }

// RemoveIn deletes the objects of a namespace whose names begin with prefix, whatever their finalizers are for.
func (c *Client) RemoveIn(ctx context.Context, r schema.GroupVersionResource, namespace, prefix string) error {
	objects := c.Resource(r).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s in %s: %w", r.Resource, namespace, err)
	}
	for _, o := range list.Items {
		if !strings.HasPrefix(o.GetName(), prefix) {
			continue
		}
		if len(o.GetFinalizers()) > 0 {
			if _, err := objects.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("let %s %s/%s be deleted: %w", r.Resource, namespace, o.GetName(), err)
			}
		}
		now := int64(0)
		if err := objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s/%s: %w", r.Resource, namespace, o.GetName(), err)
		}
	}
	return nil
}
