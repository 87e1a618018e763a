package store

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applier is a manager that applies to the status of an object.
type applier struct {
	key     Key
	manager string
}

// repeat is an apply that was merged by Kubernetes' own code. Nearly all applies are the one before with other values, as a reporter's at each interval:
// nobody gains or loses a field then, nothing moves, and to merge is to put the values where those before are.
type repeat struct {
	status    any
	ownership int64 // of the version that it made
}

// repeated is what an apply makes of a version if it repeats the one before.
func (s *Store) repeated(t *Type, live *Version, patch *unstructured.Unstructured, o ApplyOptions, now time.Time) (candidate, bool) {
	last, known := s.repeats[applier{live.Key, o.Manager}]
	if !known || last.ownership != live.ownership || o.Subresource != "status" || !onlyStatus(patch.Object) || patch.GroupVersionKind() != t.Kind {
		return candidate{}, false
	}
	of := t.schema.structural.Properties["status"]
	merged, ok := renewed(&of, patch.Object["status"], last.status, live.body["status"])
	if !ok {
		return candidate{}, false
	}
	c := live.renew(merged, o.Manager, now)
	c.repeats = patch.Object["status"]
	return c, true
}

// remember keeps an apply that made a version, unless somebody else owns a part of the same.
func (s *Store) remember(t *Type, v *Version, patch map[string]any, o ApplyOptions) {
	if id := (applier{v.Key, o.Manager}); t.schema != nil && o.Subresource == "status" && onlyStatus(patch) && alone(v.owners, o.Manager) {
		s.repeats[id] = repeat{patch["status"], v.ownership}
	} else {
		delete(s.repeats, id)
	}
}

// onlyStatus reports whether an apply has the name of its object and a status, and nothing else.
func onlyStatus(patch map[string]any) bool {
	meta, _ := patch["metadata"].(map[string]any)
	named := 0
	for _, name := range []string{"name", "namespace"} {
		if _, ok := meta[name]; ok {
			named++
		}
	}
	_, ok := patch["status"].(map[string]any)
	return ok && len(patch) == 4 && len(meta) == named
}

// renew is a version with another status, and the time of the manager's entry if that is one that differs.
func (v *Version) renew(status any, manager string, now time.Time) candidate {
	body := with(v.body, "status", status)
	body["metadata"] = with(metadataOf(v.body), "resourceVersion", v.ResourceVersion())
	owners := slices.Clone(v.owners)
	if !reflect.DeepEqual(status, v.body["status"]) {
		owners[slices.IndexFunc(owners, appliedBy(manager))].Time = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
		slices.SortFunc(owners, compareEntries)
	}
	return candidate{body: body, owners: owners}
}

// appliedBy finds the entry of what a manager applied to the status.
func appliedBy(manager string) func(metav1.ManagedFieldsEntry) bool {
	return func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "status"
	}
}

// alone reports whether a manager applied fields of the status that nobody else owns.
func alone(owners []metav1.ManagedFieldsEntry, manager string) bool {
	mine := slices.IndexFunc(owners, appliedBy(manager))
	if mine < 0 {
		return false
	}
	own, ok := fieldsOf(owners[mine])
	for i, e := range owners {
		if i == mine {
			continue
		}
		other, read := fieldsOf(e)
		if !ok || !read || !own.Intersection(other).Empty() {
			return false
		}
	}
	return ok
}

func fieldsOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	set := &fieldpath.Set{}
	return set, e.FieldsV1 != nil && set.FromJSON(e.FieldsV1.GetRawReader()) == nil
}

// ownership is the revision since which everybody owns what they own: that of the version before, if times alone differ.
func (s *Store) ownership(owners []metav1.ManagedFieldsEntry, live *Version) int64 {
	if live == nil || len(owners) != len(live.owners) {
		return s.revision + 1
	}
	byManager := func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.APIVersion, b.APIVersion))
	}
	if !sameOwners(slices.SortedFunc(slices.Values(owners), byManager), slices.SortedFunc(slices.Values(live.owners), byManager)) {
		return s.revision + 1
	}
	return live.ownership
}

// sameOwners ignores times: what differs in nothing else is not written.
func sameOwners(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		return x.Manager == y.Manager && x.Operation == y.Operation && x.APIVersion == y.APIVersion && x.Subresource == y.Subresource &&
			(x.FieldsV1 == y.FieldsV1 || bytes.Equal(x.FieldsV1.GetRawBytes(), y.FieldsV1.GetRawBytes()))
	})
}

// renewed puts the values of an apply into what there is. It is false if the apply differs from the last in more than values, or in the key of an item.
func renewed(s *schema.Structural, applied, last, live any) (any, bool) {
	switch a := applied.(type) {
	case map[string]any:
		return renewedFields(s, a, last, live)
	case []any:
		if s != nil && s.XListType != nil && *s.XListType == "map" {
			return renewedItems(s, a, last, live)
		}
		return live, reflect.DeepEqual(applied, live)
	}
	return applied, applied != nil && reflect.TypeOf(applied) == reflect.TypeOf(live)
}

func renewedFields(s *schema.Structural, applied map[string]any, last, live any) (any, bool) {
	before, _ := last.(map[string]any)
	is, _ := live.(map[string]any)
	if len(before) != len(applied) || len(applied) == 0 {
		return nil, false
	}
	out := maps.Clone(is)
	for name, value := range applied {
		was, ok1 := before[name]
		now, ok2 := is[name]
		if !ok1 || !ok2 {
			return nil, false
		}
		var ok bool
		if out[name], ok = renewed(fieldOf(s, name), value, was, now); !ok {
			return nil, false
		}
	}
	return out, true
}

func fieldOf(s *schema.Structural, name string) *schema.Structural {
	if s == nil {
		return nil
	}
	if of, ok := s.Properties[name]; ok {
		return &of
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func renewedItems(s *schema.Structural, applied []any, last, live any) (any, bool) {
	before, _ := last.([]any)
	is, _ := live.([]any)
	if len(before) != len(applied) || len(applied) == 0 {
		return nil, false
	}
	out, next := slices.Clone(is), 0 // items that changed their order are moved
	for i, item := range applied {
		for next < len(is) && !sameKeys(s.XListMapKeys, item, is[next]) {
			next++
		}
		if next == len(is) || !sameKeys(s.XListMapKeys, item, before[i]) {
			return nil, false
		}
		var ok bool
		if out[next], ok = renewed(s.Items, item, before[i], is[next]); !ok {
			return nil, false
		}
		next++
	}
	return out, true
}

func sameKeys(keys []string, a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	for _, k := range keys {
		if x[k] == nil || x[k] != y[k] {
			return false
		}
	}
	return true
}
