package store

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renewal is what is known of an object that one manager alone updates again and again, as the holder of a lease does: the values
// below the spec that it changed, and so owns, while its entry names the same fields.
type renewal struct {
	id     managerID
	fields *metav1.FieldsV1
	paths  map[string]bool
}

// renew answers an update of a built-in object that changes such values and nothing else: nobody gains or loses a field, values
// change, and the time of the manager's entry. It is false for all that is not so.
func (s *Store) renew(now time.Time, t *Type, live *record, in *unstructured.Unstructured, o UpdateOptions) (*Version, bool, error) {
	list, entry := live.only(t, o)
	r := live.renewal
	if entry == nil || r == nil || r.id != idOf(entry) || r.fields != entry.FieldsV1 || !live.sameHead(in.Object) {
		return nil, false, nil
	}
	changed, same := differences(live.body["spec"], in.Object["spec"])
	if !same || len(changed) == 0 {
		return nil, false, nil
	}
	for _, path := range changed {
		if !r.paths[path] {
			return nil, false, nil
		}
	}
	s.answered++
	e := *entry
	e.Time = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	v := &Version{
		Key: live.Key, UID: live.UID, Generation: live.Generation, Created: live.Created,
		body: with(live.body, "spec", in.Object["spec"]), owners: list.replace(0, &e),
		content: live.content + jsonSize(in.Object["spec"]) - jsonSize(live.body["spec"]),
	}
	v, err := s.commit(v, live)
	return v, true, err
}

// only is the entry of an updater of a whole built-in object that nobody else owns anything of; nil if that is not so.
func (r *record) only(t *Type, o UpdateOptions) (*ownerList, *metav1.ManagedFieldsEntry) {
	list, ok := r.owners.(*ownerList)
	if !ok || r.index == nil || !t.BuiltIn || o.Subresource != "" || len(list.list) != 1 {
		return nil, nil
	}
	id := managerID{name: cmp.Or(o.Manager, "unknown"), version: t.Kind.GroupVersion().String(), operation: metav1.ManagedFieldsOperationUpdate}
	if idOf(list.list[0]) != id {
		return nil, nil
	}
	return list, list.list[0]
}

// sameHead is whether an update leaves all but the spec as it is. Of the metadata it has a part, with the version, or all that the store showed,
// as a client of Kubernetes sends it.
func (r *record) sameHead(in map[string]any) bool {
	meta, _ := in["metadata"].(map[string]any)
	was, _ := r.Shown().Object["metadata"].(map[string]any)
	if len(in) != len(r.body) || meta["resourceVersion"] != was["resourceVersion"] {
		return false
	}
	for name := range was {
		switch _, kept := meta[name]; {
		case kept, name == "uid", name == "creationTimestamp", name == "managedFields": // the store puts these back
		default:
			return false
		}
	}
	for name, value := range meta {
		if !equal(value, was[name]) {
			return false
		}
	}
	for name, value := range in {
		if name != "metadata" && name != "spec" && !equal(value, r.body[name]) {
			return false
		}
	}
	return true
}

// differences are the paths of the values that differ; false if more than values does.
func differences(a, b any) (paths []string, ok bool) {
	from, ok1 := a.(map[string]any)
	to, ok2 := b.(map[string]any)
	if !ok1 || !ok2 || len(from) != len(to) {
		return nil, false
	}
	for name, was := range from {
		now, there := to[name]
		switch {
		case !there:
			return nil, false
		case equal(was, now):
		case isValue(was) && isValue(now):
			paths = append(paths, name)
		default:
			below, ok := differences(was, now)
			if !ok {
				return nil, false
			}
			for _, path := range below {
				paths = append(paths, name+"\x00"+path)
			}
		}
	}
	return paths, true
}

func isValue(v any) bool {
	switch v.(type) {
	case string, bool, int64, float64:
		return true
	}
	return false
}

// rememberUpdate keeps what an update by the real code changed from what was there before it.
func (r *record) rememberUpdate(t *Type, before map[string]any, o UpdateOptions) {
	_, entry := r.only(t, o)
	if entry == nil {
		r.renewal = nil
		return
	}
	changed, same := differences(before["spec"], r.body["spec"])
	if !same {
		return
	}
	if r.renewal == nil || r.renewal.id != idOf(entry) || r.renewal.fields != entry.FieldsV1 {
		r.renewal = &renewal{id: idOf(entry), fields: entry.FieldsV1, paths: map[string]bool{}}
	}
	for _, path := range changed {
		r.renewal.paths[path] = true
	}
}
