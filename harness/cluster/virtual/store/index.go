package store

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// index is who owns what in the newest version of an object.
type index struct {
	lists    []listIndex // as Type.lists
	managers map[managerID]*manager
}

type listIndex struct {
	at     map[string]int         // where the item of a key stands
	owners map[string][]managerID // who owns anything of it
}

// managerID names an entry of managedFields.
type managerID struct {
	name, subresource, version string
	operation                  metav1.ManagedFieldsOperationType
}

// manager is what is known of an entry.
type manager struct {
	at    int        // where it stands in the ownerList
	items [][]string // the keys of which it owns anything, by list

	// What it applied last, and the fields that it owned afterwards: while it still owns those, an apply of the same form
	// would have it own the same.
	applied map[string]any
	owned   *metav1.FieldsV1
}

func idOf(e *metav1.ManagedFieldsEntry) managerID {
	return managerID{name: e.Manager, subresource: e.Subresource, version: e.APIVersion, operation: e.Operation}
}

// reindex makes the index that of the newest version, of which fields are the managedFields, and shares with those of the
// version before what did not change. An object that it cannot be made for is left to the real code.
func (r *record) reindex(t *Type, fields entryList, before owners) owners {
	ix := r.index
	old, shared := before.(*ownerList)
	if ix == nil || !shared {
		ix, old = &index{lists: make([]listIndex, len(t.lists)), managers: map[managerID]*manager{}}, nil
	}
	r.index = nil
	if !ix.place(t, r.body) {
		return fields
	}
	out, err := ix.own(t, fields, old)
	if err != nil {
		return fields
	}
	r.index = ix
	return out
}

// place finds where the items stand; it is false for lists that are none of objects with keys of their own.
func (ix *index) place(t *Type, body map[string]any) bool {
	for i, l := range t.lists {
		items := l.at(body)
		at := make(map[string]int, len(items))
		for j, item := range items {
			if _, ok := item.(map[string]any); !ok {
				return false
			}
			at[itemKey(l.keys, item)] = j
		}
		if len(at) != len(items) {
			return false
		}
		ix.lists[i].at = at
		if ix.lists[i].owners == nil {
			ix.lists[i].owners = map[string][]managerID{}
		}
	}
	return true
}

// own takes over the managedFields of a new version.
func (ix *index) own(t *Type, fields entryList, old *ownerList) (*ownerList, error) {
	out := &ownerList{list: make([]*metav1.ManagedFieldsEntry, len(fields))}
	seen := make(map[managerID]bool, len(fields))
	for i := range fields {
		id := idOf(&fields[i])
		seen[id] = true
		var was *metav1.ManagedFieldsEntry
		if m := ix.managers[id]; m != nil {
			was = old.list[m.at]
		}
		e, err := ix.entry(t, id, fields[i], was)
		if err != nil {
			return nil, err
		}
		out.list[i] = e
		out.bytes += entrySize(e)
	}
	for i, e := range out.list { // only now: old was read by the old places
		ix.managers[idOf(e)].at = i
	}
	for id := range ix.managers {
		if !seen[id] {
			ix.forget(id)
			delete(ix.managers, id)
		}
	}
	return out, nil
}

// entry is an entry, or what it shares with the one before.
func (ix *index) entry(t *Type, id managerID, e metav1.ManagedFieldsEntry, was *metav1.ManagedFieldsEntry) (*metav1.ManagedFieldsEntry, error) {
	if was == nil || was.FieldsV1 != e.FieldsV1 && !bytes.Equal(was.FieldsV1.GetRawBytes(), e.FieldsV1.GetRawBytes()) {
		return &e, ix.know(t, id, &e)
	}
	if was.Time.Equal(e.Time) {
		return was, nil
	}
	e.FieldsV1 = was.FieldsV1
	return &e, nil
}

// know reads what an entry owns.
func (ix *index) know(t *Type, id managerID, e *metav1.ManagedFieldsEntry) error {
	set, err := decode(e.FieldsV1)
	if err != nil {
		return err
	}
	ix.forget(id)
	m := &manager{items: make([][]string, len(t.lists))}
	ix.managers[id] = m
	for p := range set.All() {
		i, key, ok := t.itemOf(p)
		if ok && !slices.Contains(ix.lists[i].owners[key], id) { // an item and what is in it do not come one after the other
			m.items[i] = append(m.items[i], key)
			ix.lists[i].owners[key] = append(ix.lists[i].owners[key], id)
		}
	}
	return nil
}

// forget takes a manager from the items that it owned.
func (ix *index) forget(id managerID) {
	m := ix.managers[id]
	if m == nil {
		return
	}
	for i, keys := range m.items {
		for _, key := range keys {
			left := slices.DeleteFunc(ix.lists[i].owners[key], func(o managerID) bool { return o == id })
			if ix.lists[i].owners[key] = left; len(left) == 0 {
				delete(ix.lists[i].owners, key)
			}
		}
	}
}

func decode(f *metav1.FieldsV1) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(f.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("read the fields of a manager: %w", err)
	}
	return set, nil
}

// itemOf is the list, and the key in it, of the item that a path leads to or into.
func (t *Type) itemOf(p fieldpath.Path) (int, string, bool) {
	for i, l := range t.lists {
		n := len(l.path)
		if len(p) > n && p[n].Key != nil && leads(p, l.path) {
			item := make(map[string]any, len(l.keys))
			for _, f := range *p[n].Key {
				item[f.Name] = f.Value.Unstructured()
			}
			return i, itemKey(l.keys, item), true
		}
	}
	return 0, "", false
}

func leads(p fieldpath.Path, names []string) bool {
	for i, name := range names {
		if p[i].FieldName == nil || *p[i].FieldName != name {
			return false
		}
	}
	return true
}
