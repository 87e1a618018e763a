package store

import (
	"fmt"
	"strconv"

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
	if _, err := s.types.of(k.Resource); err != nil {
		return nil, err
	}
	live := s.objects[k]
	if live == nil {
		return nil, k.notFound()
	}
	if p.UID != "" && p.UID != live.UID {
		return nil, k.precondition(fmt.Sprintf("UID in precondition: %s, UID in object meta: %s", p.UID, live.UID))
	}
	if rv := strconv.FormatInt(live.Revision, 10); p.ResourceVersion != "" && p.ResourceVersion != rv {
		return nil, k.precondition(fmt.Sprintf("ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", p.ResourceVersion, rv))
	}
	delete(s.objects, k)
	s.revision++
	last := *live.Version
	last.Revision = s.revision
	s.log = append(s.log, Event{Type: watch.Deleted, Revision: s.revision, Version: &last, Old: live.Version})
	return &last, nil
}
