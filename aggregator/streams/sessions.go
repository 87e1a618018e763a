package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// ErrNotExpected is the error of a stream whose node should not report.
var ErrNotExpected = errors.New("the node is not expected to report")

// ID of a stream, unique within a term as leader; 0 is none.
type ID uint64

// MaxStreams of a node at the same time: in a roll-out with surge an older and a newer reporter run side by side.
const MaxStreams = 2

// Sessions are the streams of one term as leader. The zero value has none, and expects no node. It is safe for concurrent use.
type Sessions struct {
	mu       sync.Mutex
	last     ID
	revision uint64 // counts changes
	expected map[string]bool
	of       map[string]*session
	full     map[string]time.Time // by node: when its bucket is full again
	pending  map[string]time.Time // by node: until when a report that was sent to the API server, and got no answer, may take effect
}

// session is the streams of a node, the oldest first. It stays when the last one has ended.
type session struct {
	streams []stream
	replica contract.ReplicaHealth
}

type stream struct {
	id    ID
	since uint64 // revision that it was opened with
	shown bool   // the EncryptionHealth has shown it since it was opened
}

// Expect replaces the nodes that should report, and returns the streams that have to end because their node is not among them.
func (s *Sessions) Expect(nodes []string) (ended []ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = make(map[string]bool, len(nodes))
	for _, n := range nodes {
		s.expected[n] = true
	}
	for node, x := range s.of {
		if s.expected[node] {
			continue
		}
		for _, o := range x.streams {
			ended = append(ended, o.id)
		}
		delete(s.of, node)
		s.revision++
	}
	slices.Sort(ended)
	return ended
}

// Open begins a stream of a node, and returns its ID, and that of a stream that has to end because the node has too many. The stream stands once
// Shown has returned it.
func (s *Sessions) Open(node string) (id, surplus ID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.expected[node] {
		return 0, 0, fmt.Errorf("node %q: %w", contract.SafeText(node, 64), ErrNotExpected)
	}
	if s.of == nil {
		s.of = map[string]*session{}
	}
	x := s.of[node]
	if x == nil {
		x = &session{}
		s.of[node] = x
	}
	if len(x.streams) == 0 { // what another stream reported goes on being true
		x.replica = unknown(node, contract.ReplicaConnected)
	}
	if len(x.streams) == MaxStreams {
		surplus = x.streams[0].id
		x.streams = x.streams[1:]
	}
	s.last++
	s.revision++
	x.streams = append(x.streams, stream{id: s.last, since: s.revision})
	return s.last, surplus, nil
}

// find is the session of a node and the index of a stream in it; -1 if the stream has ended.
func (s *Sessions) find(node string, id ID) (x *session, i int) {
	if x = s.of[node]; x == nil {
		return nil, -1
	}
	return x, slices.IndexFunc(x.streams, func(o stream) bool { return o.id == id })
}

// Current reports whether a stream may speak for its node: it has not ended, and the node should report.
func (s *Sessions) Current(node string, id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.find(node, id)
	return i >= 0
}

// Rate of the reports of a node. A reporter sends one in an interval, and again after each reconnect and change of the configuration.
const (
	perInterval = 4
	burst       = 8
)

// Admit takes a place for a report of a node, from a bucket that has burst of them and gets perInterval new ones in an interval. It returns when the report
// may be carried out; false, and no place is taken, if that is after an instant.
func (s *Sessions) Admit(node string, interval time.Duration, now, until time.Time) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := interval / perInterval
	full := s.full[node]
	if full.Before(now) {
		full = now
	}
	if at = full.Add(-(burst - 1) * every); at.After(until) {
		return at, false
	}
	if s.full == nil {
		s.full = map[string]time.Time{}
	}
	s.full[node] = full.Add(every)
	return at, true
}

// Unanswered notes that a report of a node was sent to the API server, which was given until an instant, and that nobody waits for the answer any more.
func (s *Sessions) Unanswered(node string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]time.Time{}
	}
	s.pending[node] = until
}

// Decided is when every earlier report of a node has taken effect or never will: the next one is not written before, for it would be overtaken.
func (s *Sessions) Decided(node string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[node]
}

// Reported notes the replica of a report that was written to the operator's CR. It reports whether the EncryptionHealth has to change.
func (s *Sessions) Reported(id ID, replica contract.ReplicaHealth) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, i := s.find(replica.NodeName, id)
	if i < 0 || x.replica == replica {
		return false
	}
	x.replica = replica
	s.revision++
	return true
}

// Close ends a stream. It reports whether the EncryptionHealth has to change: not while another stream of the node is there.
func (s *Sessions) Close(node string, id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, i := s.find(node, id)
	if i < 0 {
		return false
	}
	x.streams = slices.Delete(x.streams, i, i+1)
	if len(x.streams) > 0 {
		return false
	}
	x.replica = unknown(node, contract.ReplicaDisconnected)
	s.revision++
	return true
}

// Picture is the replicas of all nodes that should report, without their transition times, and the revision that they are of.
type Picture struct {
	Replicas map[string]contract.ReplicaHealth
	revision uint64
}

// Picture of now.
func (s *Sessions) Picture() Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Picture{Replicas: make(map[string]contract.ReplicaHealth, len(s.expected)), revision: s.revision}
	for node := range s.expected {
		p.Replicas[node] = unknown(node, contract.ReplicaDisconnected)
		if x := s.of[node]; x != nil {
			p.Replicas[node] = x.replica
		}
	}
	return p
}

// Shown notes that the EncryptionHealth says what a picture says, and returns the streams that stand from now on.
func (s *Sessions) Shown(p Picture) (standing []ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.of {
		for i := range x.streams {
			if o := &x.streams[i]; !o.shown && o.since <= p.revision {
				o.shown = true
				standing = append(standing, o.id)
			}
		}
	}
	slices.Sort(standing)
	return standing
}

func unknown(node, reason string) contract.ReplicaHealth {
	return contract.ReplicaHealth{NodeName: node, Status: "Unknown", Reason: reason}
}
