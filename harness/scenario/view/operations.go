package view

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// hop is a set of the parties that told of an operation.
type hop uint8

const (
	hopAPIServer hop = 1 << iota
	hopPlugin
	hopRemoteKMS

	everyHop = hopAPIServer | hopPlugin | hopRemoteKMS
	// observable are those of a plugin under test: nothing records what its KMS does.
	observable = hopAPIServer | hopPlugin
)

// applyCall counts a plugin's Encrypt or Decrypt.
func (s *State) applyCall(c *history.Call) bool {
	if c.Method == "Status" || c.Outcome != history.CallOK {
		return false
	}
	if c.Method == "Encrypt" {
		s.operations.Encrypts++
	} else {
		s.operations.Decrypts++
	}
	if c.UID == "" {
		s.operations.WithoutUID++
		return true
	}
	s.heard(c.Method, c.UID, hopPlugin)
	return true
}

// applyEnvelope notes what another party told of an operation. Many writes use the key of one Encrypt; that is none.
func (s *State) applyEnvelope(e *history.Envelope) bool {
	if e.UID == "" || !e.OK {
		return false
	}
	if e.Op == "use" {
		return s.applyUse(e)
	}
	if e.Hop == "remote-kms" {
		return s.heard(e.Op, e.UID, hopRemoteKMS)
	}
	return s.heard(e.Op, e.UID, hopAPIServer)
}

// applyUse counts a write that was logged with all that it takes to find the object again.
func (s *State) applyUse(e *history.Envelope) bool {
	if e.Object == "" || e.For.Resource == "" || e.For.Version == "" || e.For.Verb == "" {
		return false
	}
	s.operations.Named++
	return true
}

// heard says whether all parties have told of it now, and had not before.
func (s *State) heard(op, uid string, of hop) bool {
	key := strings.ToLower(op) + " " + uid
	before := s.hops[key]
	s.hops[key] = before | of
	if before == s.parties || before|of != s.parties {
		return false
	}
	s.operations.Followed++
	return true
}
