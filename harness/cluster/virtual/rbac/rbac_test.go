package rbac

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

func objects(t *testing.T, texts ...string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func TestRoles(t *testing.T) {
	var r Roles
	err := r.Set(objects(t,
		"{kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [operator.openshift.io], resources: [kubeapiservers], resourceNames: [cluster], verbs: [get]}, {apiGroups: [operator.openshift.io], resources: [kubeapiservers/status], verbs: [patch]}]}",
		"{kind: ClusterRoleBinding, metadata: {name: reader}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: Group, name: reporters}, {kind: ServiceAccount, name: reporter, namespace: kms}]}",
		"{kind: Role, metadata: {name: leases, namespace: kms}, rules: [{apiGroups: ['*'], resources: [leases], verbs: ['*']}]}",
		"{kind: RoleBinding, metadata: {name: leases, namespace: kms}, roleRef: {kind: Role, name: leases}, subjects: [{kind: User, name: aggregator}]}",
		"{kind: ClusterRoleBinding, metadata: {name: nothing}, roleRef: {kind: ClusterRole, name: not-there}, subjects: [{kind: User, name: aggregator}]}",
	))
	if err != nil {
		t.Fatal(err)
	}
	reporter := &user.DefaultInfo{Name: "r", Groups: []string{"reporters"}}
	account := &user.DefaultInfo{Name: "system:serviceaccount:kms:reporter"}
	aggregator := &user.DefaultInfo{Name: "aggregator"}
	master := &user.DefaultInfo{Name: "m", Groups: []string{user.SystemPrivilegedGroup}}
	get := Attributes{Verb: "get", Group: "operator.openshift.io", Resource: "kubeapiservers", Name: "cluster"}
	patch := Attributes{Verb: "patch", Group: "operator.openshift.io", Resource: "kubeapiservers", Subresource: "status", Name: "cluster"}
	lease := Attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kms", Name: "l"}
	change := func(a Attributes, f func(*Attributes)) Attributes { f(&a); return a }
	for name, c := range map[string]struct {
		u    user.Info
		a    Attributes
		want bool
	}{
		"by group":             {reporter, get, true},
		"by account":           {account, patch, true},
		"another object":       {reporter, change(get, func(a *Attributes) { a.Name = "other" }), false},
		"another verb":         {reporter, change(get, func(a *Attributes) { a.Verb = "list" }), false},
		"without subresource":  {reporter, change(patch, func(a *Attributes) { a.Subresource = "" }), false},
		"another group":        {reporter, change(get, func(a *Attributes) { a.Group = "" }), false},
		"in its namespace":     {aggregator, lease, true},
		"in another namespace": {aggregator, change(lease, func(a *Attributes) { a.Namespace = "other" }), false},
		"by nobody's role":     {aggregator, get, false},
		"master":               {master, lease, true},
	} {
		if got := r.Allows(c.u, c.a); got != c.want {
			t.Errorf("%s: allowed %v", name, got)
		}
	}
	if err := patch.Refusal(reporter); err.Error() != `User "r" cannot patch resource "kubeapiservers/status" in API group "operator.openshift.io" at the cluster scope` {
		t.Error(err)
	}
	if err := r.Set(objects(t, "{kind: ClusterRole, metadata: {name: x}, rules: none}")); err == nil {
		t.Error("rules that are no list are read")
	}
}
