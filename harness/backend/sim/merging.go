package sim

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// merging is a patch on its way into an object. An API server reads the object, works the new one out, and writes it if nobody
// wrote in between; if somebody did it works it out again, and again, until the deadline. So those who write one object at the
// same time keep each other from it: of all that are at work one succeeds, and all others begin anew. No client sees a conflict.
//
// What it leaves out: priority and fairness, which would let a part of the requests wait at the door, and what else an API server
// uses its processors for.
type merging struct {
	s        *server
	r        request
	wanted   func() bool
	done     func(reply)
	deadline *kernel.Timer
	until    time.Time
	over     bool
}

// merges says whether a request is worked out from the object that is there, so that it can be tried again.
func (r request) merges() bool {
	return r.verb == verbPatch && (r.contentType == audit.ContentTypeApply || r.contentType == audit.ContentTypeJSONPatch)
}

func newMerging(s *server, r request, wanted func() bool, done func(reply)) *merging {
	return &merging{s: s, r: r, wanted: wanted, done: done}
}

func (m *merging) begin(limit time.Duration) {
	m.until = m.s.w.k.Now().Add(limit)
	m.deadline = m.s.after(limit, func() { m.end(timedOut(m.r)) })
	m.try()
}

func (m *merging) end(rep reply) {
	if !m.over {
		m.over = true
		m.deadline.Stop()
		m.done(rep)
	}
}

// try works the new object out from the one that is there now.
func (m *merging) try() {
	if !m.wanted() {
		m.end(canceled())
		return
	}
	read, managers := m.object()
	m.s.cpu.do(ApplyCost(managers), func() {
		if m.over {
			return // nobody told the processor
		}
		m.s.w.etcd.access(m.s, m.until.Sub(m.s.w.k.Now()), func(ok bool) { m.commit(ok, read) })
	})
}

// commit writes the object, unless it is another one by now.
func (m *merging) commit(ok bool, read int64) {
	now, _ := m.object()
	switch {
	case m.over:
	case !ok:
		m.end(timedOut(m.r))
	case !m.wanted():
		m.end(canceled())
	case now != read:
		m.try()
	default:
		m.end(m.s.perform(&m.r))
	}
}

// object is the revision of the object, and how many managers it has.
func (m *merging) object() (revision int64, managers int) {
	v, err := m.s.w.store.Get(m.r.key)
	if err != nil {
		return 0, 0
	}
	return v.Revision, v.Managers()
}
