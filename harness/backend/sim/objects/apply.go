package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Apply merges the items of a manager into the status, or replaces the spec.
func (s *Store) Apply(now time.Time, r schema.GroupVersionResource, patch *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	old, err := s.Get(Key{r, patch.GetNamespace(), patch.GetName()})
	if apierrors.IsNotFound(err) && o.Subresource == "" {
		return s.Create(now, r, patch, o.Manager)
	}
	if err != nil {
		return nil, err
	}
	u := (&unstructured.Unstructured{Object: old.body}).DeepCopy()
	next := *old
	if o.Subresource == "" {
		for k, v := range patch.DeepCopy().Object {
			if k != "metadata" {
				u.Object[k] = v
			}
		}
	} else {
		next.owners = merge(u.Object, old.owners, patch.DeepCopy().Object, o.Manager)
	}
	if reflect.DeepEqual(u.Object, old.body) && reflect.DeepEqual(next.owners, old.owners) {
		return old, nil
	}
	next.body = u.Object
	return s.put(watch.Modified, &next), nil
}

// JSONPatch changes an object as RFC 6902 says.
func (s *Store) JSONPatch(now time.Time, k Key, patch []byte, o UpdateOptions) (*Version, error) {
	old, err := s.Get(k)
	if err != nil {
		return nil, err
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	before, err := json.Marshal(old.body)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := p.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(422, "patch", k.Resource.GroupResource(), k.Name, err.Error(), 0, false)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(after); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.Update(now, k.Resource, u, o)
}

// lists are where the items of a status are, and by which fields each is known.
func lists() []struct {
	path, keys []string
	name       string
} {
	typed := []string{"nodeName", "keyID"}
	return []struct {
		path, keys []string
		name       string
	}{
		{[]string{"status", "conditions"}, []string{"type"}, "conditions"},
		{[]string{"status", "encryptionStatus", "healthReports"}, typed, "reports"},
		{[]string{"status", "oauthAPIServer", "encryptionStatus", "healthReports"}, typed, "oauthReports"},
	}
}

// items are the values of a status's items by their identity.
func items(o map[string]any) map[string]any {
	out := map[string]any{}
	for _, l := range lists() {
		list, _, _ := unstructured.NestedSlice(o, l.path...)
		for _, item := range list {
			out[identity(l.name, l.keys, item)] = item
		}
	}
	return out
}

func identity(list string, keys []string, item any) string {
	key := map[string]string{}
	for _, k := range keys {
		m, _ := item.(map[string]any)
		key[k] = fmt.Sprint(m[k])
	}
	text, err := json.Marshal(key)
	if err != nil {
		return list
	}
	return list + " " + string(text)
}

// merge puts the items of a manager into o, and takes out those that it gave up and nobody else owns.
func merge(o map[string]any, owners map[string][]string, patch map[string]any, manager string) map[string][]string {
	next := map[string][]string{}
	wanted, standing := items(patch), items(o)
	for item, who := range owners {
		next[item] = slices.Clone(who)
		if _, still := wanted[item]; !still {
			next[item] = slices.DeleteFunc(next[item], func(m string) bool { return m == manager })
		}
		if len(next[item]) == 0 {
			delete(next, item)
			delete(standing, item)
		}
	}
	for item, value := range wanted {
		if !reflect.DeepEqual(standing[item], value) {
			next[item] = nil // taken by force
		}
		if !slices.Contains(next[item], manager) {
			next[item] = append(next[item], manager)
			slices.Sort(next[item])
		}
		standing[item] = value
	}
	rebuild(o, patch, standing)
	return next
}

// rebuild writes the lists anew: what stood keeps its place, what is new follows.
func rebuild(o, patch map[string]any, standing map[string]any) {
	for _, l := range lists() {
		var out []any
		seen := map[string]bool{}
		for _, source := range []map[string]any{o, patch} {
			list, _, _ := unstructured.NestedSlice(source, l.path...)
			for _, item := range list {
				id := identity(l.name, l.keys, item)
				if v, ok := standing[id]; ok && !seen[id] {
					out, seen[id] = append(out, v), true
				}
			}
		}
		if len(out) == 0 {
			unstructured.RemoveNestedField(o, l.path...)
			continue
		}
		_ = unstructured.SetNestedSlice(o, out, l.path...)
	}
}

func kept(owners map[string][]string, items map[string]any) map[string][]string {
	next := maps.Clone(owners)
	maps.DeleteFunc(next, func(item string, _ []string) bool { _, ok := items[item]; return !ok })
	return next
}

// managed is the owners as managedFields.
func (v *Version) managed() []metav1.ManagedFieldsEntry {
	by := map[string][]string{}
	for item, managers := range v.owners {
		for _, m := range managers {
			by[m] = append(by[m], item)
		}
	}
	var out []metav1.ManagedFieldsEntry
	for _, m := range slices.Sorted(maps.Keys(by)) {
		out = append(out, metav1.ManagedFieldsEntry{Manager: m, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields(by[m]))})
	}
	return out
}

func fields(owned []string) string {
	root := map[string]any{}
	for _, l := range lists() {
		at := root
		for _, item := range owned {
			key, ok := cut(item, l.name+" ")
			if !ok {
				continue
			}
			at = root
			for _, p := range l.path {
				if at["f:"+p] == nil {
					at["f:"+p] = map[string]any{}
				}
				at = at["f:"+p].(map[string]any)
			}
			at["k:"+key] = map[string]any{}
		}
	}
	text, err := json.Marshal(root)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func cut(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return "", false
	}
	return s[len(prefix):], true
}
