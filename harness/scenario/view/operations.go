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

// operations counts the envelope operations.
type operations struct {
	counts  Operations
	parties hop            // that an operation is followed through
	hops    map[string]hop // that told of it, by operation and uid
}

// call counts a plugin's Encrypt or Decrypt.
func (o *operations) call(c *history.Call) bool {
	if c.Method == "Status" || c.Outcome != history.CallOK {
		return false
	}
	if c.Method == "Encrypt" {
		o.counts.Encrypts++
	} else {
		o.counts.Decrypts++
	}
	if c.UID == "" {
		o.counts.WithoutUID++
		return true
	}
	o.heard(c.Method, c.UID, hopPlugin)
	return true
}

// envelope notes what another party told of an operation. Many writes use the key of one Encrypt: of a use, only one that was logged with all that it
// takes to find the object again counts.
func (o *operations) envelope(e *history.Envelope) bool {
	switch {
	case e.UID == "" || !e.OK:
		return false
	case e.Op == "use":
		named := e.Object != "" && e.For.Resource != "" && e.For.Version != "" && e.For.Verb != ""
		if named {
			o.counts.Named++
		}
		return named
	case e.Hop == "remote-kms":
		return o.heard(e.Op, e.UID, hopRemoteKMS)
	}
	return o.heard(e.Op, e.UID, hopAPIServer)
}

// heard reports whether all parties have told of it now, and had not before.
func (o *operations) heard(op, uid string, of hop) bool {
	key := strings.ToLower(op) + " " + uid
	before := o.hops[key]
	o.hops[key] = before | of
	if before == o.parties || before|of != o.parties {
		return false
	}
	o.counts.Followed++
	return true
}
