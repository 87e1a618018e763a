package store

import (
	"fmt"
	"net/http"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// add makes a candidate the first version of an object.
func (s *Store) add(now time.Time, t *Type, k Key, c candidate) (*Version, error) {
	if s.objects[k] != nil {
		return nil, k.exists()
	}
	body := c.body
	if t.Status && !t.BuiltIn {
		body = with(body, "status", nil)
	}
	meta := metadataOf(body)
	delete(meta, "resourceVersion")
	body = with(body, "metadata", meta)
	o := &unstructured.Unstructured{Object: body}
	o.SetUID(s.newUID())
	o.SetCreationTimestamp(metav1.Time{Time: now.UTC().Truncate(time.Second)})
	if !t.BuiltIn {
		o.SetGeneration(1)
	}
	if err := t.invalid(k.Name, t.validate(o, nil, "", nil)); err != nil {
		return nil, err
	}
	return s.commit(k, body, c.owners, nil)
}

// change makes a candidate the next version of an object, if it is allowed and differs from it.
func (s *Store) change(t *Type, live *Version, c candidate, subresource string) (*Version, error) {
	if err := checkVersion(t, live, c); err != nil {
		return nil, err
	}
	body := t.prepare(live, c, subresource)
	o := &unstructured.Unstructured{Object: body}
	if err := t.invalid(live.Key.Name, t.validate(o, live, subresource, c.repeats)); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(body, live.body) && sameOwners(c.owners, live.owners) {
		return live, s.admit(live, live)
	}
	return s.commit(live.Key, body, c.owners, live)
}

// checkVersion is the optimistic lock.
func checkVersion(t *Type, live *Version, c candidate) error {
	switch c.metadata().GetResourceVersion() {
	case live.ResourceVersion():
		return nil
	case "":
		if t.Unconditional {
			return nil
		}
		kind := t.Kind.GroupKind()
		kind.Kind = t.Resource.Resource
		return invalidKind(kind, live.Key.Name, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	return live.Key.stale()
}

// prepare keeps of a candidate what may be written through the subresource.
func (t *Type) prepare(live *Version, c candidate, subresource string) map[string]any {
	if subresource == "status" {
		body := with(live.body, "status", c.body["status"])
		if v, ok := c.body["status"]; ok && v == nil {
			body["status"] = nil // null, which is not the same as nothing
		}
		return body
	}
	body := c.body
	if t.Status {
		body = with(body, "status", live.body["status"])
	}
	meta := metadataOf(body)
	delete(meta, "resourceVersion")
	body = with(body, "metadata", meta)
	o := &unstructured.Unstructured{Object: body}
	o.SetGeneration(live.Generation)
	if !t.BuiltIn && !reflect.DeepEqual(with(body, "metadata", nil), with(live.body, "metadata", nil)) {
		o.SetGeneration(live.Generation + 1)
	}
	if o.GetUID() == "" {
		o.SetUID(live.UID)
	}
	o.SetCreationTimestamp(metav1.Time{Time: live.Created})
	return body
}

// metadataOf is a copy of an object's metadata.
func metadataOf(body map[string]any) map[string]any {
	m, _ := body["metadata"].(map[string]any)
	return with(m, "", nil)
}

// commit makes a body and its owners the newest version of an object, if it is admitted, and etcd takes it.
func (s *Store) commit(k Key, body map[string]any, owners []metav1.ManagedFieldsEntry, live *Version) (*Version, error) {
	o := &unstructured.Unstructured{Object: body}
	v := &Version{
		Key: k, UID: o.GetUID(), Generation: o.GetGeneration(), Created: o.GetCreationTimestamp().UTC(),
		body: body, owners: owners, ownership: s.ownership(owners, live), managed: &managed{shared: &s.shared},
	}
	if err := s.admit(live, v); err != nil {
		return nil, err
	}
	if v.Size() > MaxRequestBytes {
		return nil, status(http.StatusInternalServerError, metav1.StatusReasonUnknown, tooLarge)
	}
	s.revision++
	v.Revision = s.revision
	e := Event{Type: watch.Added, Revision: s.revision, Version: v}
	if live != nil {
		e.Type, e.Old = watch.Modified, live
	}
	s.objects[k] = v
	s.log = append(s.log, e)
	return v, nil
}

// admit is an error if a change must not be made, also one that changes nothing.
func (s *Store) admit(was, will *Version) error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit(was, will)
}

func uidMismatch(uid types.UID) error {
	return fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
}
