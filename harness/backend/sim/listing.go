package sim

import (
	"time"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
)

// listing is everything of a resource at a revision.
type listing struct {
	items    []*objects.Version
	revision int64
	until    time.Time
}

// sawAll remembers what the API server returned to a list.
func (m *mirror) sawAll(rep reply) {
	m.listed = listing{rep.list, rep.revision, m.a.w.k.Now().Add(ownViewMemory)}
}

// all is the newest known state of everything.
func (m *mirror) all() []*objects.Version {
	if m.listed.revision <= m.seen || m.a.w.k.Now().After(m.listed.until) {
		m.listed = listing{}
		return m.items
	}
	return m.listed.items
}
