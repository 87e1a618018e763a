package cluster

import "testing"

func TestCompare(t *testing.T) {
	before := Inventory{"secrets default/a": "1", "nodes n1": "1", "leases.coordination.k8s.io kube-system/l": "1", "events default/e": "1", "configmaps default/c": "4"}
	same := Inventory{"secrets default/a": "1", "nodes n1": "7", "leases.coordination.k8s.io kube-system/l": "9", "events default/f": "8", "configmaps default/c": "4"}
	if c := Compare(before, same); !c.None() {
		t.Errorf("a cluster that nobody touched: %s", c)
	}
	for name, test := range map[string]struct {
		change func(Inventory)
		want   string
	}{
		"an object was left":        {func(i Inventory) { i["clusterroles.rbac.authorization.k8s.io kms"] = "9" }, "added clusterroles.rbac.authorization.k8s.io kms"},
		"an object was deleted":     {func(i Inventory) { delete(i, "secrets default/a") }, "removed secrets default/a"},
		"an object was changed":     {func(i Inventory) { i["configmaps default/c"] = "5" }, "changed configmaps default/c"},
		"a node was made":           {func(i Inventory) { i["nodes cp-1"] = "9" }, "added nodes cp-1"},
		"a lease was left":          {func(i Inventory) { i["leases.coordination.k8s.io kms/l"] = "9" }, "added leases.coordination.k8s.io kms/l"},
		"an object was made anew":   {func(i Inventory) { i["secrets default/a"] = "30" }, "changed secrets default/a"},
		"a node's lease is missing": {func(i Inventory) { delete(i, "leases.coordination.k8s.io kube-system/l") }, "removed leases.coordination.k8s.io kube-system/l"},
	} {
		after := Inventory{}
		for k, v := range before {
			after[k] = v
		}
		test.change(after)
		if got := Compare(before, after).String(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
