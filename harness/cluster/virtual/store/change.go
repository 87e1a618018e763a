package store

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
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
	if err := t.invalid(k.Name, t.validate(o, nil, "")); err != nil {
		return nil, err
	}
	return s.store(t, k, body, c.owners, nil)
}

// change makes a candidate the next version of an object, if it is allowed and differs from it.
func (s *Store) change(t *Type, live *record, c candidate, subresource string) (*Version, error) {
	if err := checkVersion(t, live.Version, c); err != nil {
		return nil, err
	}
	body := t.prepare(live.Version, c, subresource)
	o := &unstructured.Unstructured{Object: body}
	if err := t.invalid(live.Key.Name, t.validate(o, live.Version, subresource)); err != nil {
		return nil, err
	}
	slices.SortFunc(c.owners, compareEntries)
	if equal(body, live.body) && sameOwners(c.owners, live.owners.entries()) {
		return live.Version, s.admit(live.Version, live.Version)
	}
	return s.store(t, live.Key, body, c.owners, live)
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
	if !t.BuiltIn && !equal(with(body, "metadata", nil), with(live.body, "metadata", nil)) {
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

// sameOwners ignores times: what differs in nothing else is not written.
func sameOwners(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion || x.Subresource != y.Subresource ||
			!bytes.Equal(x.FieldsV1.GetRawBytes(), y.FieldsV1.GetRawBytes()) {
			return false
		}
	}
	return true
}

// store makes a version of a body and its owners.
func (s *Store) store(t *Type, k Key, body map[string]any, fields entryList, live *record) (*Version, error) {
	o := &unstructured.Unstructured{Object: body}
	v := &Version{
		Key: k, UID: o.GetUID(), Generation: o.GetGeneration(), Created: o.GetCreationTimestamp().UTC(),
		body: body, owners: fields, content: jsonSize(body),
	}
	var before owners
	if live != nil {
		before = live.owners
	}
	if _, err := s.commit(v, live); err != nil {
		return nil, err
	}
	if s.options.SSA == Model {
		v.owners = s.objects[k].reindex(t, fields, before)
	}
	return v, nil
}

// admit is an error if a change must not be made, also one that changes nothing.
func (s *Store) admit(was, will *Version) error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit(was, will)
}

// commit makes a version the newest, if it is admitted, and etcd takes it.
func (s *Store) commit(v *Version, live *record) (*Version, error) {
	v.managed = &managed{shared: &s.shared}
	var was *Version
	if live != nil {
		was = live.Version
	}
	if err := s.admit(was, v); err != nil {
		return nil, err
	}
	if v.Size() > MaxRequestBytes {
		return nil, status(http.StatusInternalServerError, metav1.StatusReasonUnknown, tooLarge)
	}
	s.revision++
	v.Revision = s.revision
	e := Event{Type: watch.Added, Revision: s.revision, Version: v}
	if live != nil {
		e.Type, e.Old = watch.Modified, live.Version
		live.Version = v
	} else {
		s.objects[v.Key] = &record{Version: v}
	}
	s.log = append(s.log, e)
	return v, nil
}

func uidMismatch(uid types.UID) error {
	return fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
}
