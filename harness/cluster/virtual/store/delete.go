package store

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

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
