package store

import (
	"fmt"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

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
