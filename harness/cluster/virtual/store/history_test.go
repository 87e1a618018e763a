package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// The size of every version of any history is that of its JSON.
func TestHistories(t *testing.T) {
	types := allTypes(t)
	rapid.Check(t, func(t *rapid.T) {
		if difference := history(t, newSubject(types)); difference != "" {
			t.Fatal(difference)
		}
	})
}

var (
	crResources = []schema.GroupVersionResource{kubeAPIServers, kubeAPIServers.GroupVersion().WithResource("authentications")}
	crKinds     = []string{"KubeAPIServer", "Authentication"}
)

// history is random operations of many managers on two CRs.
func history(t *rapid.T, p *subject) string {
	for i, r := range crResources {
		o := operator(crKinds[i], object{"spec": object{"managementState": "Managed"}})
		if d := p.do(operation{verb: "create", key: Key{r, "", "cluster"}, object: o, manager: "harness"}); d != "" {
			return d
		}
	}
	last := map[string]*unstructured.Unstructured{}
	for i, steps := 0, rapid.IntRange(1, 40).Draw(t, "steps"); i < steps; i++ {
		p.now = p.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * time.Second)
		g := &generator{T: t, subject: p, last: last, which: rapid.IntRange(0, 1).Draw(t, "cr")}
		if d := g.step(); d != "" {
			return fmt.Sprintf("step %d: %s", i, d)
		}
	}
	return ""
}

type generator struct {
	*rapid.T
	*subject
	which int
	last  map[string]*unstructured.Unstructured // that a manager applied to a CR
}

func (g *generator) resource() schema.GroupVersionResource { return crResources[g.which] }
func (g *generator) key() Key                              { return Key{Resource: g.resource(), Name: "cluster"} }

func (g *generator) one(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(g.T, what)
}
func (g *generator) maybe(what string) bool  { return rapid.Bool().Draw(g.T, what) }
func (g *generator) seldom(what string) bool { return rapid.IntRange(0, 9).Draw(g.T, what) == 0 }

func (g *generator) step() string {
	switch n := rapid.IntRange(0, 39).Draw(g.T, "operation"); {
	case n < 18:
		return g.againStep()
	case n < 32:
		return g.applyStep()
	case n < 35:
		return g.updateStep()
	case n < 37:
		return g.patchStep()
	case n < 39:
		return g.mainStep()
	}
	return g.deleteStep()
}

func (g *generator) manager() string { return g.one("manager", "a", "b", "c", "d") }

// applyStep is mostly a manager's own items, sometimes others', sometimes much else.
func (g *generator) applyStep() string {
	o := ApplyOptions{Manager: g.manager(), Force: g.maybe("force"), Subresource: "status"}
	status := object{}
	if list := g.conditions(o.Manager); len(list) > 0 || g.seldom("empty list") {
		status["conditions"] = list
	}
	if g.maybe("typed") {
		g.putReports(status, o.Manager)
	}
	if g.seldom("replicas") {
		status["readyReplicas"] = int64(rapid.IntRange(0, 1).Draw(g.T, "n"))
	}
	if g.seldom("unknown field") && g.maybe("really") {
		status["nothing"] = "x"
	}
	patch := operator(crKinds[g.which], object{"status": status})
	if g.seldom("label") && g.strays() {
		patch.SetLabels(map[string]string{"l": g.one("label", "1", "2")})
	}
	if g.seldom("spec") && g.strays() {
		patch.Object["spec"] = object{"logLevel": "Debug"}
	}
	if g.seldom("versioned") && g.maybe("wrong") {
		patch.SetResourceVersion(g.one("rv", "1", fmt.Sprint(g.store.revision)))
	}
	g.last[g.lastKey(o.Manager)] = patch
	return g.apply(g.resource(), patch, o)
}

func (g *generator) lastKey(manager string) string { return fmt.Sprint(g.which, manager) }

// againStep is an apply of the same form as the manager's last, with other texts: what reporters do.
func (g *generator) againStep() string {
	o := ApplyOptions{Manager: g.manager(), Force: g.maybe("force"), Subresource: "status"}
	patch := g.last[g.lastKey(o.Manager)]
	if patch == nil {
		return g.applyStep()
	}
	patch = patch.DeepCopy()
	list, _, _ := unstructured.NestedFieldNoCopy(patch.Object, "status", "conditions")
	items, _ := list.([]any)
	reports, _, _ := unstructured.NestedFieldNoCopy(patch.Object, "status", "encryptionStatus", "healthReports")
	more, _ := reports.([]any)
	for _, item := range append(slices.Clone(items), more...) {
		for _, field := range []string{"message", "detail", "lastCheckedTime"} {
			if _, ok := item.(object)[field]; ok && g.maybe("other "+field) {
				item.(object)[field] = g.one(field, "2026-05-08T12:00:02Z", "2026-05-08T12:00:03Z", "\t<\x00", "")
			}
		}
	}
	g.last[g.lastKey(o.Manager)] = patch
	return g.apply(g.resource(), patch, o)
}

// strays is whether applies carry what their endpoint drops. Whether such an apply is written hangs on the order of the times
// in managedFields, and a server's times are others.
func (g *generator) strays() bool { return g.server == nil }

func (g *generator) conditions(manager string) []any {
	out := []any{}
	for _, name := range g.names(manager) {
		c := condition(name, g.one("message", "", "1", "2", "\"<ü")).(object)
		for _, field := range []string{"message", "reason"} {
			if g.seldom("without " + field) {
				delete(c, field)
			}
		}
		if g.seldom("status") {
			c["status"] = g.one("status", "False", "False", "Maybe")
		}
		out = append(out, c)
	}
	return out
}

// names are those of a manager's items: its own, others', in any order, now and then one twice.
func (g *generator) names(manager string) []string {
	switch rapid.IntRange(0, 7).Draw(g.T, "names") {
	case 0, 1, 2, 4, 5:
		return []string{manager}
	case 3:
		return []string{manager, "x" + manager}
	}
	names := rapid.Permutation([]string{"a", "b", "c", "d", "y", "z"}).Draw(g.T, "of")
	names = names[:rapid.IntRange(0, 4).Draw(g.T, "count")]
	if len(names) > 0 && g.seldom("twice") {
		names = append(names, names[0])
	}
	return names
}

// putReports puts typed reports where the kind has them.
func (g *generator) putReports(status object, manager string) {
	list := []any{}
	for _, node := range g.names(manager) {
		r := object{"nodeName": node, "keyID": g.one("keyID", "1", "2"), "status": "Healthy", "lastCheckedTime": g.one("checked", "2026-05-08T12:00:00Z", "2026-05-08T12:00:01Z"), "remoteKeyID": "k"}
		if g.maybe("detail") {
			r["status"], r["detail"] = "Error", g.one("detail", "x", "y")
		}
		if g.seldom("wrong report") {
			r[g.one("wrong field", "detail", "remoteKeyID", "nodeName", "lastCheckedTime", "status")] = g.one("wrong text", "", "CP_1", strings.Repeat("ü", 1025))
		}
		list = append(list, r)
	}
	under := object{"encryptionStatus": object{"healthReports": list}}
	if g.which == 1 {
		under = object{"oauthAPIServer": under}
	}
	for k, v := range under {
		status[k] = v
	}
}

// updateStep reads the object, changes the conditions and writes the status, sometimes with an old version.
func (g *generator) updateStep() string {
	live, err := g.store.Get(g.key())
	if err != nil {
		return ""
	}
	o := live.Object()
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	switch {
	case len(list) > 0 && g.maybe("remove"):
		list = list[:len(list)-1]
	case len(list) > 1 && g.maybe("turn"):
		list[0], list[1] = list[1], list[0]
	case len(list) > 0 && g.maybe("change"):
		list[0].(object)["message"] = g.one("message", "1", "2", "3")
	default:
		list = append(list, condition(g.one("name", "a", "n1", "n2", "n3"), "1"))
	}
	if err := unstructured.SetNestedSlice(o.Object, list, "status", "conditions"); err != nil {
		return err.Error()
	}
	if g.seldom("stale") {
		o.SetResourceVersion("2")
	}
	if g.seldom("reset") {
		o.Object["metadata"].(object)["managedFields"] = []any{object{}}
	}
	manager := fmt.Sprintf("u%d", rapid.IntRange(0, g.updaters).Draw(g.T, "updater"))
	sub := g.one("subresource", "status", "status", "status", "")
	return g.do(operation{verb: "update", key: g.key(), object: o, manager: manager, subresource: sub})
}

// patchStep removes an item as the aggregator does.
func (g *generator) patchStep() string {
	live, err := g.store.Get(g.key())
	if err != nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(live.Body(), "status", "conditions")
	at := rapid.IntRange(0, 4).Draw(g.T, "at")
	ops := []object{{"op": "remove", "path": fmt.Sprintf("/status/conditions/%d", at)}}
	if at < len(list) {
		ops = append([]object{{"op": "test", "path": ops[0]["path"], "value": list[at]}}, ops...)
	}
	if g.seldom("all") {
		ops = []object{{"op": "remove", "path": "/status/conditions"}}
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return err.Error()
	}
	return g.do(operation{verb: "patch", key: g.key(), patch: patch, manager: "a", subresource: "status"})
}

// mainStep applies to the object itself.
func (g *generator) mainStep() string {
	patch := operator(crKinds[g.which], object{
		"spec": object{"logLevel": g.one("level", "Debug", "Normal", "Loud"), "managementState": "Managed"},
	})
	if g.strays() {
		patch.Object["status"] = object{"conditions": g.conditions("a")}
	}
	patch.SetLabels(map[string]string{"l": g.one("label", "1", "2")})
	return g.apply(g.resource(), patch, ApplyOptions{Manager: g.manager(), Force: g.maybe("force")})
}

func (g *generator) deleteStep() string {
	if d := g.do(operation{verb: "delete", key: g.key()}); d != "" {
		return d
	}
	return g.mainStep()
}
