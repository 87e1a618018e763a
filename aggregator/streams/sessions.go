package streams

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/contract"
)

// ErrNotExpected is the error of a stream whose node should not report.
var ErrNotExpected = errors.New("the node is not expected to report")

// ID of a stream, unique within a term as leader; 0 is none.
type ID uint64

// Sessions are the streams of one term as leader. The zero value has none, and expects no node. It is safe for concurrent use.
type Sessions struct {
	mu       sync.Mutex
	last     ID
	revision uint64 // counts changes
	expected map[string]bool
	of       map[string]*session
}

// session is the newest stream of a node, also when it has ended.
type session struct {
	id      ID
	open    bool
	since   uint64 // revision that it was opened with
	shown   bool   // the EncryptionHealth has shown it since it was opened
	replica contract.ReplicaHealth
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
		if x.open {
			ended = append(ended, x.id)
		}
		delete(s.of, node)
		s.revision++
	}
	return ended
}

// Open begins a stream of a node, and returns its ID and that of the stream that it replaces. The stream stands once Shown has returned it.
func (s *Sessions) Open(node string) (id, replaced ID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.expected[node] {
		return 0, 0, fmt.Errorf("node %q: %w", contract.SafeText(node, 64), ErrNotExpected)
	}
	if old := s.of[node]; old != nil && old.open {
		replaced = old.id
	}
	s.last++
	s.revision++
	if s.of == nil {
		s.of = map[string]*session{}
	}
	s.of[node] = &session{id: s.last, open: true, since: s.revision, replica: unknown(node, contract.ReplicaConnected)}
	return s.last, replaced, nil
}

// Current reports whether a stream may speak for its node: it is the newest one, and the node should report.
func (s *Sessions) Current(node string, id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[node]
	return x != nil && x.id == id && x.open
}

// Reported notes a report that was written to the operator's CR, with the generation that its reporter observed. It reports whether the
// EncryptionHealth has to change.
func (s *Sessions) Reported(id ID, report contract.Report, generation int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[report.Node]
	if x == nil || x.id != id || !x.open {
		return false
	}
	replica := reported(report, generation)
	if x.replica == replica {
		return false
	}
	x.replica = replica
	s.revision++
	return true
}

// Close ends a stream. It reports whether the EncryptionHealth has to change: not for a stream that was replaced.
func (s *Sessions) Close(node string, id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[node]
	if x == nil || x.id != id || !x.open {
		return false
	}
	x.open = false
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
		if x.open && !x.shown && x.since <= p.revision {
			x.shown = true
			standing = append(standing, x.id)
		}
	}
	return standing
}

func unknown(node, reason string) contract.ReplicaHealth {
	return contract.ReplicaHealth{NodeName: node, Status: "Unknown", Reason: reason}
}
