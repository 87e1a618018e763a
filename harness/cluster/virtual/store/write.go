package store

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// ApplyOptions are those of a Server-Side Apply. Subresource is "" or "status".
type ApplyOptions struct {
	Manager     string
	Force       bool
	Subresource string
}

// UpdateOptions are those of an update or a JSON patch. Subresource is "" or "status".
type UpdateOptions struct {
	Manager     string
	Subresource string
}

// Apply merges a patch, an apply configuration, into the object that it names, which is created if there is none.
func (s *Store) Apply(now time.Time, r schema.GroupVersionResource, patch *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	t, k, in, err := s.input(r, patch)
	if err != nil {
		return nil, err
	}
	if err := checkApply(o, in); err != nil {
		return nil, err
	}
	live := s.objects[k]
	if live == nil && o.Subresource != "" {
		return nil, k.notFound()
	}
	if live == nil {
		return s.applyNew(now, t, k, in, o)
	}
	if c, ok := s.repeated(t, live, in, o, now); ok {
		return s.change(t, live, c, o.Subresource)
	}
	sent := in.DeepCopy().Object
	c, err := t.merge.apply(live, in, o, now)
	if err != nil {
		return nil, err
	}
	v, err := s.change(t, live, c, o.Subresource)
	if err != nil {
		return nil, err
	}
	s.remember(t, v, sent, o)
	return v, nil
}

func (s *Store) applyNew(now time.Time, t *Type, k Key, in *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	c, err := t.merge.apply(nil, in, o, now)
	if err != nil {
		return nil, err
	}
	if uid := c.metadata().GetUID(); uid != "" {
		return nil, apierrors.NewConflict(k.Resource.GroupResource(), k.Name, uidMismatch(uid))
	}
	if c.metadata().GetResourceVersion() != "" {
		return nil, k.stale()
	}
	return s.add(now, t, k, c)
}

func checkApply(o ApplyOptions, patch *unstructured.Unstructured) error {
	errs := metavalidation.ValidatePatchOptions(&metav1.PatchOptions{FieldManager: o.Manager, Force: &o.Force}, types.ApplyYAMLPatchType)
	if err := badOptions("PatchOptions", errs); err != nil {
		return err
	}
	if jsonSize(patch.Object) > MaxBodyBytes {
		return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	}
	return nil
}

func checkUpdateManager(options, manager string) error {
	return badOptions(options, metavalidation.ValidateFieldManager(manager, field.NewPath("fieldManager")))
}

func badOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// Update replaces an object, or its status. With a resourceVersion it is made only to that version.
func (s *Store) Update(now time.Time, r schema.GroupVersionResource, object *unstructured.Unstructured, o UpdateOptions) (*Version, error) {
	t, k, in, err := s.input(r, object)
	if err != nil {
		return nil, err
	}
	if err := checkUpdateManager("UpdateOptions", o.Manager); err != nil {
		return nil, err
	}
	if err := t.checkKind(in); err != nil {
		return nil, err
	}
	live := s.objects[k]
	if live == nil {
		return nil, k.notFound()
	}
	if uid := in.GetUID(); uid != "" && uid != live.UID {
		return nil, k.precondition("UID in precondition: " + string(uid) + ", UID in object meta: " + string(live.UID))
	}
	return s.update(now, t, live, in, o)
}

// JSONPatch applies an RFC 6902 patch to an object, or to its status.
func (s *Store) JSONPatch(now time.Time, k Key, patch []byte, o UpdateOptions) (*Version, error) {
	t, err := s.types.of(k.Resource)
	if err != nil {
		return nil, err
	}
	if err := checkUpdateManager("PatchOptions", o.Manager); err != nil {
		return nil, err
	}
	live := s.objects[k]
	if live == nil {
		return nil, k.notFound()
	}
	in, err := patched(live, patch)
	if err != nil {
		return nil, err
	}
	return s.update(now, t, live, in, o)
}

func patched(live *Version, patch []byte) (*unstructured.Unstructured, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	before, err := json.Marshal(live.Shown().Object)
	if err != nil {
		return nil, internal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(after, &out.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// update makes a change that is not an apply. If only managedFields make the object too large, it goes without them.
func (s *Store) update(now time.Time, t *Type, live *Version, in *unstructured.Unstructured, o UpdateOptions) (*Version, error) {
	t.prune(in)
	t.Default(in)
	c, err := t.merge.update(live, in, o.Manager, o.Subresource, now)
	if err != nil {
		return nil, err
	}
	v, err := s.change(t, live, c, o.Subresource)
	if isTooLarge(err) {
		c.owners = nil
		return s.change(t, live, c, o.Subresource)
	}
	return v, err
}

// Preconditions of a deletion; what is empty is not asked for.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Delete removes an object. The version that it returns is the last state, under the revision of the deletion.
func (s *Store) Delete(k Key, p Preconditions) (*Version, error) {
	live, err := s.deleted(k, p)
	if err != nil {
		return nil, err
	}
	delete(s.objects, k)
	s.revision++
	last := *live
	last.Revision = s.revision
	s.log = append(s.log, Event{Type: watch.Deleted, Revision: s.revision, Version: &last, Old: live})
	return &last, nil
}

// Restore makes an earlier version of an object the newest one, under a new revision.
func (s *Store) Restore(v *Version) (*Version, error) {
	return s.commit(v.Key, v.body, v.owners, s.objects[v.Key])
}

// MarkDeleted is Delete of an object that has finalizers: it stays until it has none, marked as being deleted.
func (s *Store) MarkDeleted(now time.Time, k Key, p Preconditions) (*Version, error) {
	live, err := s.deleted(k, p)
	if err != nil {
		return nil, err
	}
	meta := metadataOf(live.body)
	if meta["deletionTimestamp"] != nil {
		return live, nil
	}
	meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = now.UTC().Format(time.RFC3339), int64(0)
	if live.Generation > 0 {
		meta["generation"] = live.Generation + 1
	}
	return s.commit(k, with(live.body, "metadata", meta), live.owners, live)
}

// deleted is what a deletion is of, if its preconditions are met.
func (s *Store) deleted(k Key, p Preconditions) (*Version, error) {
	live, err := s.Get(k)
	if err != nil {
		return nil, err
	}
	if p.UID != "" && p.UID != live.UID {
		return nil, k.precondition(fmt.Sprintf("UID in precondition: %s, UID in object meta: %s", p.UID, live.UID))
	}
	if rv := strconv.FormatInt(live.Revision, 10); p.ResourceVersion != "" && p.ResourceVersion != rv {
		return nil, k.precondition(fmt.Sprintf("ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", p.ResourceVersion, rv))
	}
	return live, nil
}
