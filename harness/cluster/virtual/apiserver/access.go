package apiserver

import (
	"context"
	"fmt"
	"sync"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/admission"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/rbac"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// Groups of the objects that access goes by.
const (
	rbacGroup      = "rbac.authorization.k8s.io"
	admissionGroup = "admissionregistration.k8s.io"
)

// Access authorizes and admits requests by the objects of a cluster: roles and bindings, and
// ValidatingAdmissionPolicies. It is evaluated by kube-apiserver's own code (packages rbac and admission), so that
// ci/manifests are tested on sim as well. All API servers of a cluster can share one.
type Access struct {
	cluster  *Cluster
	roles    rbac.Roles
	policies *admission.Policies

	mu                  sync.Mutex
	rolesAt, policiesAt int64
}

// NewAccess goes by the objects that there are, and by those to come.
func NewAccess(c *Cluster) *Access { return &Access{cluster: c, policies: admission.New()} }

func (a *Access) Authorize(q *Request) error {
	if err := a.renew(); err != nil {
		return apierrors.NewInternalError(err)
	}
	if !q.IsResourceRequest {
		return nil
	}
	of := q.attributes()
	if !a.roles.Allows(q.User, of) {
		return q.Forbidden()
	}
	return nil
}

func (q *Request) attributes() rbac.Attributes {
	return rbac.Attributes{Verb: q.Verb, Group: q.APIGroup, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name}
}

// Forbidden is the error for a request that the user's roles do not allow.
func (q *Request) Forbidden() error {
	return apierrors.NewForbidden(q.Key().Resource.GroupResource(), q.Name, q.attributes().Refusal(q.User))
}

// Review answers a SubjectAccessReview, for Options.Special. Of users that it names no groups it knows none.
func (a *Access) Review(q *Request) (any, error) {
	var review authorization.SubjectAccessReview
	if err := yaml.Unmarshal(q.Body, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := a.review(&review); err != nil {
		return nil, err
	}
	return review, nil
}

func (a *Access) review(r *authorization.SubjectAccessReview) error {
	var of rbac.Attributes
	switch asked, path := r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes; {
	case asked != nil:
		of = rbac.Attributes{Verb: asked.Verb, Group: asked.Group, Resource: asked.Resource, Subresource: asked.Subresource, Namespace: asked.Namespace, Name: asked.Name}
	case path != nil:
		of = rbac.Attributes{Verb: path.Verb, Path: path.Path}
	default:
		return apierrors.NewBadRequest("spec: expected resourceAttributes or nonResourceAttributes")
	}
	if err := a.renew(); err != nil {
		return apierrors.NewInternalError(err)
	}
	r.Status.Allowed = a.roles.Allows(&user.DefaultInfo{Name: r.Spec.User, Groups: r.Spec.Groups}, of)
	return nil
}

// Reviews asks without a request over the network.
func (a *Access) Reviews() authorizationclient.SubjectAccessReviewInterface { return reviews{a} }

type reviews struct{ access *Access }

func (r reviews) Create(_ context.Context, asked *authorization.SubjectAccessReview, _ metav1.CreateOptions) (*authorization.SubjectAccessReview, error) {
	out := asked.DeepCopy()
	return out, r.access.review(out)
}

// renew reads what has changed of the objects. A real API server learns of it by an informer, some milliseconds later;
// here a new role counts at once. It must not be called while a change is made, which has the cluster locked.
func (a *Access) renew() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.cluster.Newest(rbacGroup); now != a.rolesAt {
		if err := a.roles.Set(a.cluster.Objects(rbacGroup)); err != nil {
			return fmt.Errorf("authorization: %w", err)
		}
		a.rolesAt = now
	}
	now := a.cluster.Newest(admissionGroup)
	if now == a.policiesAt {
		return nil
	}
	var policies, bindings []*unstructured.Unstructured
	for _, o := range a.cluster.Objects(admissionGroup) {
		switch o.GetKind() {
		case "ValidatingAdmissionPolicy":
			policies = append(policies, o)
		case "ValidatingAdmissionPolicyBinding":
			bindings = append(bindings, o)
		}
	}
	if err := a.policies.Set(policies, bindings); err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	a.policiesAt = now
	return nil
}

func (a *Access) Admit(q *Request, was, will *store.Version) error {
	operation, of := kadmission.Update, will
	switch {
	case was == nil:
		operation = kadmission.Create
	case will == nil:
		operation, of = kadmission.Delete, was
	}
	t := a.cluster.types.Get(of.Key.Resource)
	return a.policies.Admit(q.HTTP.Context(), kadmission.NewAttributesRecord(shownTo(will), shownTo(was), t.Kind, of.Key.Namespace, of.Key.Name, of.Key.Resource, q.Subresource, operation, nil, q.dry, q.User))
}

// shownTo is a version for policies; nil, without a type, of none.
func shownTo(v *store.Version) runtime.Object {
	if v == nil {
		return nil
	}
	return v.Shown()
}
