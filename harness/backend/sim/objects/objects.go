// Package objects keeps the objects of a simulated cluster: revisions, uids, and which field manager owns which item of a
// status list. It merges whole items, not fields. It is a placeholder with the shape of what will take its place.
package objects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Key names an object.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// Version is one state of one object. It never changes.
type Version struct {
	Key      Key
	Revision int64
	UID      types.UID
	Created  time.Time
	body     map[string]any
	owners   map[string][]string // managers by item
}

// Body is the object without managedFields and resourceVersion; shared, not to be changed.
func (v *Version) Body() map[string]any { return v.body }

// ResourceVersion is the revision as clients see it.
func (v *Version) ResourceVersion() string { return strconv.FormatInt(v.Revision, 10) }

// Object is a copy of the whole object.
func (v *Version) Object() *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: v.body}).DeepCopy()
	o.SetResourceVersion(v.ResourceVersion())
	if fields := v.managed(); len(fields) > 0 {
		o.SetManagedFields(fields)
	}
	return o
}

// Event is one change.
type Event struct {
	Type     watch.EventType
	Revision int64
	Version  *Version
}

// ApplyOptions and UpdateOptions say who writes what.
type (
	ApplyOptions struct {
		Manager     string
		Force       bool
		Subresource string
	}
	UpdateOptions struct{ Manager, Subresource string }
	Preconditions struct{ ResourceVersion string }
)

// Store is the objects.
type Store struct {
	objects  map[Key]*Version
	log      []Event
	revision int64
	uids     int64
}

// New is an empty store.
func New() *Store { return &Store{objects: map[Key]*Version{}, revision: 1} }

// Get is the newest version of an object.
func (s *Store) Get(k Key) (*Version, error) {
	if v := s.objects[k]; v != nil {
		return v, nil
	}
	return nil, apierrors.NewNotFound(k.Resource.GroupResource(), k.Name)
}

// List is every object of a resource, sorted, and the revision at which it is so.
func (s *Store) List(r schema.GroupVersionResource, namespace string) ([]*Version, int64, error) {
	var out []*Version
	for k, v := range s.objects {
		if k.Resource == r && (namespace == "" || namespace == k.Namespace) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *Version) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return out, s.revision, nil
}

// Since is every change after a revision.
func (s *Store) Since(revision int64) ([]Event, error) {
	i := len(s.log)
	for i > 0 && s.log[i-1].Revision > revision {
		i--
	}
	return s.log[i:], nil
}

// Revision is that of the newest change.
func (s *Store) Revision() int64 { return s.revision }

// Create adds an object.
func (s *Store) Create(now time.Time, r schema.GroupVersionResource, o *unstructured.Unstructured, _ string) (*Version, error) {
	k := Key{r, o.GetNamespace(), o.GetName()}
	if s.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(r.GroupResource(), k.Name)
	}
	s.uids++
	u := o.DeepCopy()
	uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids))
	u.SetUID(uid)
	u.SetCreationTimestamp(metav1.NewTime(now.Truncate(time.Second)))
	return s.put(watch.Added, &Version{Key: k, UID: uid, Created: now.Truncate(time.Second), body: u.Object, owners: map[string][]string{}}), nil
}

// Update replaces an object, or its status.
func (s *Store) Update(_ time.Time, r schema.GroupVersionResource, o *unstructured.Unstructured, opts UpdateOptions) (*Version, error) {
	old, err := s.Get(Key{r, o.GetNamespace(), o.GetName()})
	if err != nil {
		return nil, err
	}
	if rv := o.GetResourceVersion(); rv != "" && rv != old.ResourceVersion() {
		return nil, apierrors.NewConflict(r.GroupResource(), old.Key.Name, fmt.Errorf("the object has been modified"))
	}
	u := o.DeepCopy()
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	u.SetUID(old.UID)
	u.SetCreationTimestamp(metav1.NewTime(old.Created))
	next := *old
	next.body = u.Object
	next.owners = kept(old.owners, items(u.Object))
	return s.put(watch.Modified, &next), nil
}

// Delete removes an object.
func (s *Store) Delete(k Key, _ Preconditions) (*Version, error) {
	old, err := s.Get(k)
	if err != nil {
		return nil, err
	}
	gone := *old
	delete(s.objects, k)
	s.revision++
	gone.Revision = s.revision
	s.log = append(s.log, Event{watch.Deleted, s.revision, &gone})
	return &gone, nil
}

func (s *Store) put(t watch.EventType, v *Version) *Version {
	s.revision++
	v.Revision = s.revision
	s.objects[v.Key] = v
	s.log = append(s.log, Event{t, s.revision, v})
	return v
}
