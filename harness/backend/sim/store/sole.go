package store

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// sole answers an apply that is about nothing but items that are its manager's alone, or new: reports that gain or lose a detail,
// that begin, or that are withdrawn. Nobody can conflict with it, its items become what it says, and those of its manager that it
// does not name go. It is false for all that is not so, and where a list would become empty.
func (s *Store) sole(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (candidate, bool) {
	list, ok := live.owners.(*ownerList)
	if !ok || live.index == nil || o.Subresource != "status" || !t.Status || list.count() == 0 || !t.headOf(patch.Object, live) {
		return candidate{}, false
	}
	w := &soleWalk{t: t, live: live, id: applierID(t, o), owned: fieldpath.NewSet()}
	w.manager = live.index.managers[w.id]
	if m := w.manager; m != nil && (m.rest || m.applied == nil || list.list[m.at].FieldsV1 != m.owned) {
		return candidate{}, false
	}
	if !onlyLists(t.schema.fields["status"], patch.Object["status"], live.body["status"]) {
		return candidate{}, false
	}
	body := live.body
	for i := range t.lists {
		if body, ok = w.list(i, body, patch.Object); !ok {
			return candidate{}, false
		}
	}
	owners, err := w.entries(now, list, o, equal(body, live.body))
	if err != nil {
		return candidate{}, false
	}
	s.answered++
	meta, _ := body["metadata"].(map[string]any)
	return candidate{body: with(body, "metadata", with(meta, "resourceVersion", live.ResourceVersion())), owners: owners}, true
}

// headOf is whether an apply says nothing besides its status but which object it is about.
func (t *Type) headOf(patch map[string]any, live *record) bool {
	meta, _ := patch["metadata"].(map[string]any)
	return len(patch) == 4 && len(meta) == 1 && meta["name"] == live.Key.Name && patch["apiVersion"] == t.Kind.GroupVersion().String() && patch["kind"] == t.Kind.Kind
}

// onlyLists is whether what is applied is nothing but indexed lists, which are there already.
func onlyLists(n *node, patch, live any) bool {
	p, ok1 := patch.(map[string]any)
	v, ok2 := live.(map[string]any)
	if !ok1 || !ok2 || n == nil || len(p) == 0 {
		return false
	}
	for name, below := range p {
		c := n.fields[name]
		switch {
		case c == nil:
			return false
		case c.list > 0:
			_, ok1 := below.([]any)
			_, ok2 := v[name].([]any)
			if !ok1 || !ok2 {
				return false
			}
		case !c.leads || !onlyLists(c, below, v[name]):
			return false
		}
	}
	return true
}

// soleWalk goes through the lists of an apply.
type soleWalk struct {
	t       *Type
	live    *record
	id      managerID
	manager *manager       // nil for one that owns nothing yet
	owned   *fieldpath.Set // afterwards
}

// list puts the items of an apply into a list of the body, and takes away those that the manager had besides.
func (w *soleWalk) list(i int, body, patch map[string]any) (map[string]any, bool) {
	l, n := w.t.lists[i], w.t.schema
	for _, name := range w.t.lists[i].path {
		n = n.fields[name]
	}
	said, all := l.at(patch), l.at(body)
	made := make(map[string]any, len(said))
	for _, item := range said {
		key := itemKey(l.keys, item)
		if made[key] != nil || !w.may(i, key) || !w.own(l, n, item) {
			return nil, false
		}
		made[key] = item
	}
	var had []string
	if w.manager != nil {
		had = w.manager.items[i]
	}
	for _, key := range had {
		if !w.may(i, key) {
			return nil, false
		}
	}
	if len(said) == 0 && len(had) == 0 {
		return body, true
	}
	var items []any
	for _, key := range mergedOrder(keysOf(l, all), keysOf(l, said)) {
		if item := made[key]; item != nil {
			items = append(items, item)
		} else if !slices.Contains(had, key) {
			items = append(items, all[w.live.index.lists[i].at[key]])
		}
	}
	return l.put(body, items), len(items) > 0
}

// may is whether an item is the manager's alone, every field of it, or not there at all.
func (w *soleWalk) may(i int, key string) bool {
	of, l := &w.live.index.lists[i], w.t.lists[i]
	at, there := of.at[key]
	owners := of.owners[key]
	if !there {
		return len(owners) == 0
	}
	if len(owners) != 1 || owners[0] != w.id {
		return false
	}
	now, _ := l.at(w.live.body)[at].(map[string]any)
	for _, item := range l.at(w.manager.applied) {
		if last, _ := item.(map[string]any); itemKey(l.keys, item) == key {
			return sameNames(last, now)
		}
	}
	return false
}

func sameNames(a, b map[string]any) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// own makes every field of an item the manager's; false for an item that is not of texts alone, or to which defaults would be added.
func (w *soleWalk) own(l list, n *node, item any) bool {
	fields, ok := item.(map[string]any)
	if !ok || n.items == nil {
		return false
	}
	for _, c := range n.items.fields {
		if c.standard != nil {
			return false
		}
	}
	var key value.FieldList
	for _, name := range l.keys {
		text, ok := fields[name].(string)
		if !ok {
			return false
		}
		key = append(key, value.Field{Name: name, Value: value.NewValueInterface(text)})
	}
	key.Sort()
	var at fieldpath.Path
	for _, name := range l.path {
		at = append(at, fieldpath.PathElement{FieldName: &name})
	}
	at = append(at, fieldpath.PathElement{Key: &key})
	w.owned.Insert(at)
	for name, v := range fields {
		if c := n.items.fields[name]; c == nil || c.kind != "string" {
			return false
		}
		if _, ok := v.(string); !ok {
			return false
		}
		w.owned.Insert(append(at[:len(at):len(at)], fieldpath.PathElement{FieldName: &name}))
	}
	return true
}

// entries are the managedFields with what the manager owns now; who owns nothing has no entry. While nothing changes, its entry
// keeps its time.
func (w *soleWalk) entries(now time.Time, list *ownerList, o ApplyOptions, same bool) (entryList, error) {
	out := make(entryList, 0, len(list.list)+1)
	for i, e := range list.list {
		if w.manager == nil || w.manager.at != i {
			out = append(out, *e)
		}
	}
	if w.owned.Empty() {
		return out, nil
	}
	e, err := withFields(&metav1.ManagedFieldsEntry{
		Manager: o.Manager, Operation: w.id.operation, APIVersion: w.id.version, Subresource: w.id.subresource, FieldsType: "FieldsV1",
		Time: &metav1.Time{Time: now.UTC().Truncate(time.Second)},
	}, w.owned)
	if err != nil {
		return nil, err
	}
	if w.manager != nil && same && sameFields(list.list[w.manager.at].FieldsV1, e.FieldsV1) {
		e = list.list[w.manager.at]
	}
	return append(out, *e), nil
}
