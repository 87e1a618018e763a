// Package rbac authorizes requests by roles and bindings. The rules are those of Kubernetes' RBAC authorizer; aggregated ClusterRoles are read
// as they stand.
package rbac

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

type Attributes struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Path is that of a request that is about no resource.
	Path string
}

func (a Attributes) resource() string {
	if a.Subresource != "" {
		return a.Resource + "/" + a.Subresource
	}
	return a.Resource
}

// Refusal is why a user may not do something, in the words of kube-apiserver.
func (a Attributes) Refusal(u user.Info) error {
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	//lint:ignore ST1005 kube-apiserver's words
	return fmt.Errorf("User %q cannot %s resource %q in API group %q %s", u.GetName(), a.Verb, a.resource(), a.Group, where)
}

// Roles are the roles and bindings of a cluster. It is safe for concurrent use.
type Roles struct {
	mu     sync.Mutex
	grants []grant
}

// grant is rules for subjects, in a namespace, or everywhere if that is empty.
type grant struct {
	namespace string
	subjects  []rbacv1.Subject
	rules     []rbacv1.PolicyRule
}

// Set replaces all roles and bindings by those among some objects. A binding to a role that is not there grants nothing.
func (r *Roles) Set(objects []*unstructured.Unstructured) error {
	rules := map[[2]string][]rbacv1.PolicyRule{} // by namespace, empty for ClusterRoles, and name
	var grants []grant
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
			var role rbacv1.Role // a ClusterRole has the same fields, and more
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				return fmt.Errorf("read the %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			rules[[2]string{o.GetNamespace(), o.GetName()}] = role.Rules
		}
	}
	for _, o := range objects {
		if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			return fmt.Errorf("read the %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		of := [2]string{o.GetNamespace(), binding.RoleRef.Name}
		if binding.RoleRef.Kind == "ClusterRole" {
			of[0] = ""
		}
		grants = append(grants, grant{o.GetNamespace(), binding.Subjects, rules[of]})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants = grants
	return nil
}

// Allows reports whether a user may do something. A member of system:masters may do everything.
func (r *Roles) Allows(u user.Info, a Attributes) bool {
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	r.mu.Lock()
	grants := r.grants
	r.mu.Unlock()
	return slices.ContainsFunc(grants, func(g grant) bool {
		return (g.namespace == "" || g.namespace == a.Namespace) &&
			slices.ContainsFunc(g.subjects, func(s rbacv1.Subject) bool { return is(u, s, g.namespace) }) &&
			slices.ContainsFunc(g.rules, func(rule rbacv1.PolicyRule) bool { return covers(rule, a) })
	})
}

// is reports whether a user is a subject of a binding in a namespace.
func is(u user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return u.GetName() == s.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return u.GetName() == serviceaccount.MakeUsername(namespace, s.Name)
	}
	return false
}

func covers(rule rbacv1.PolicyRule, a Attributes) bool {
	if a.Path != "" {
		return (slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, a.Verb)) && slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			below, all := strings.CutSuffix(url, "*")
			return url == a.Path || all && strings.HasPrefix(a.Path, below)
		})
	}
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	resource := has(rule.Resources, a.resource()) || a.Subresource != "" && slices.ContainsFunc(rule.Resources, func(r string) bool {
		of, sub, _ := strings.Cut(r, "/")
		return of == "*" && sub == a.Subresource
	})
	return has(rule.Verbs, a.Verb) && has(rule.APIGroups, a.Group) && resource &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}
