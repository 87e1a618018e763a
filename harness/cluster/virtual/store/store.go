package store

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Store keeps the objects of one cluster.
type Store struct {
	// Admit is asked before a change is made, and refuses it by an error; was is nil for a new object. Nil: all are made.
	Admit func(was, will *Version) error

	types     *Types
	objects   map[Key]*Version
	log       []Event
	revision  int64
	compacted int64
	uids      int64
	shared    shared
	repeats   map[applier]repeat
}

// New is an empty store. Its first change has revision 2, as etcd's.
func New(t *Types) *Store {
	return &Store{types: t, objects: map[Key]*Version{}, repeats: map[applier]repeat{}, revision: 1, compacted: 1}
}

// Revision is that of the newest change.
func (s *Store) Revision() int64 { return s.revision }

// Get is the newest version of an object.
func (s *Store) Get(k Key) (*Version, error) {
	if _, err := s.types.of(k.Resource); err != nil {
		return nil, err
	}
	if v, ok := s.objects[k]; ok {
		return v, nil
	}
	return nil, k.notFound()
}

// List is every object of a resource, sorted by namespace and name, and the revision at which it is so. An empty namespace
// is all of them.
func (s *Store) List(r schema.GroupVersionResource, namespace string) ([]*Version, int64, error) {
	if _, err := s.types.of(r); err != nil {
		return nil, 0, err
	}
	var out []*Version
	for k, v := range s.objects {
		if k.Resource == r && (namespace == "" || namespace == k.Namespace) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *Version) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return out, s.revision, nil
}

// Create adds an object on behalf of a field manager.
func (s *Store) Create(now time.Time, r schema.GroupVersionResource, o *unstructured.Unstructured, manager string) (*Version, error) {
	t, k, in, err := s.input(r, o)
	if err != nil {
		return nil, err
	}
	if err := checkUpdateManager("CreateOptions", manager); err != nil {
		return nil, err
	}
	if err := t.checkKind(in); err != nil {
		return nil, err
	}
	if in.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion can not be set for Create requests")
	}
	in.SetUID("") // a client cannot choose it
	t.prune(in)
	t.Default(in)
	c, err := t.merge.update(nil, in, manager, "", now)
	if err != nil {
		return nil, err
	}
	v, err := s.add(now, t, k, c)
	if isTooLarge(err) {
		c.owners = nil
		v, err = s.add(now, t, k, c)
	}
	return v, err
}

// input is a resource's type, and an object's key and own copy.
func (s *Store) input(r schema.GroupVersionResource, o *unstructured.Unstructured) (*Type, Key, *unstructured.Unstructured, error) {
	t, err := s.types.of(r)
	if err != nil {
		return nil, Key{}, nil, err
	}
	copied, err := cloneObject(o)
	if err != nil {
		return nil, Key{}, nil, apierrors.NewBadRequest(err.Error())
	}
	k := Key{Resource: r, Namespace: copied.GetNamespace(), Name: copied.GetName()}
	if k.Name == "" {
		return nil, k, nil, apierrors.NewBadRequest("name must be provided")
	}
	if t.Namespaced != (k.Namespace != "") {
		return nil, k, nil, apierrors.NewBadRequest(fmt.Sprintf("%s %s: namespace %q in an object whose kind is namespaced: %t", t.Kind.Kind, k.Name, k.Namespace, t.Namespaced))
	}
	return t, k, copied, nil
}

func (s *Store) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids))
}

// Event is one change. Of a deletion, Version is the last state under the revision of the deletion, and Old is the same
// state as it was before. Old is nil for what was added.
type Event struct {
	Type     watch.EventType
	Revision int64
	Version  *Version
	Old      *Version
}

// Since is every change after a revision, in order, of every resource. It is shared and not to be changed. A revision that
// was compacted is answered as by an API server: 410, upon which a client lists again.
func (s *Store) Since(revision int64) ([]Event, error) {
	if revision < s.compacted {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, s.compacted))
	}
	i := sort.Search(len(s.log), func(i int) bool { return s.log[i].Revision > revision })
	return s.log[i:len(s.log):len(s.log)], nil
}

// Trim compacts when there are twice as many changes as are wanted, so that each costs the same.
func (s *Store) Trim(wanted int) {
	if len(s.log) >= 2*wanted {
		s.Compact(s.log[len(s.log)-wanted-1].Revision)
	}
}

// Compact forgets the changes up to a revision: Since is refused for all before it.
func (s *Store) Compact(revision int64) {
	revision = min(revision, s.revision)
	if revision <= s.compacted {
		return
	}
	i := sort.Search(len(s.log), func(i int) bool { return s.log[i].Revision > revision })
	s.log = append([]Event(nil), s.log[i:]...)
	s.compacted = revision
}
