// Package journal converts the journals of the fake plugin and of the remote KMS model to calls and envelopes of the
// history.
//
// Both journals write a line, in one write, before the plugin or the KMS sends the answer that it describes: every
// answer that a caller has received is in the file. harness/record/tail reads the file.
package journal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder records journals.
type Recorder struct {
	Sink record.Sink
	// Of is the further API server whose plugins a key of the remote KMS is behind; nil: there are none.
	Of func(key string) string
}

// Call records one line of a plugin's journal.
func (r *Recorder) Call(line []byte) error {
	c, err := DecodeCall(line)
	if err != nil {
		return err
	}
	r.Sink.Record(c.Ended, "journal/"+c.Node+"/"+c.KeyID, c)
	return nil
}

// Operation records one line of the remote KMS's journal.
func (r *Recorder) Operation(line []byte) error {
	o, e, err := decodeOperation(line)
	if err != nil || e == nil {
		return err
	}
	var payload any = e
	if r.Of != nil && r.Of(o.Key) != "" {
		payload = history.Of{APIServer: r.Of(o.Key), Payload: e}
	}
	r.Sink.Record(o.Time, history.RoleRemoteKMS, payload)
	return nil
}

// DecodeCall reads one line of a plugin's journal.
func DecodeCall(line []byte) (*history.Call, error) {
	var c journal.Call
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, fmt.Errorf("plugin journal: %w", err)
	}
	if c.Node == "" || c.KeyID == "" || c.Method == "" || c.Ended.IsZero() {
		return nil, fmt.Errorf("plugin journal: not a call: node, keyID, method or ended is missing")
	}
	return &history.Call{
		Node: c.Node, KeyID: c.KeyID, Method: c.Method, UID: c.UID, Began: c.Began, Ended: c.Ended, Took: c.Ended.Sub(c.Began),
		Outcome: outcome(c.Outcome), Code: c.Code, Text: c.Detail, Healthz: c.Healthz, Version: c.Version, KEKID: c.KEKID,
		HealthzBytes: sizeIfCut(c.HealthzBytes, c.Healthz), KEKIDBytes: sizeIfCut(c.KEKIDBytes, c.KEKID), Faults: c.Faults,
		AskedKEKID: c.RequestKEKID, DEKSource: c.DEKSource,
	}, nil
}

// sizeIfCut is the size of a text as it was sent, if the journal does not hold all of it.
func sizeIfCut(sent int, kept string) int {
	if sent > len(kept) {
		return sent
	}
	return 0
}

// outcome folds the plugin's own distinctions into what a caller can tell apart. An answer without content is an
// answer as far as the wire is concerned; its empty fields say the rest.
func outcome(o journal.Outcome) string {
	switch o {
	case journal.Answered, journal.Nil:
		return history.CallOK
	case journal.Abandoned:
		return history.CallAbandoned
	default:
		return history.CallError
	}
}

// decodeOperation reads one line of the remote KMS's journal. Its envelope is nil for what is no envelope operation.
func decodeOperation(line []byte) (o remotekms.Operation, e *history.Envelope, err error) {
	if err := json.Unmarshal(line, &o); err != nil {
		return o, nil, fmt.Errorf("journal of the remote KMS: %w", err)
	}
	if o.Op == "" || o.Time.IsZero() {
		return o, nil, fmt.Errorf("journal of the remote KMS: not an operation: op or time is missing")
	}
	if o.Op != "encrypt" && o.Op != "decrypt" {
		return o, nil, nil
	}
	node, keyID, _ := strings.Cut(o.Plugin, "/")
	e = &history.Envelope{Hop: history.RoleRemoteKMS, Op: o.Op, UID: o.UID, Node: node, KeyID: keyID, KEKID: o.KEKID, OK: o.Code == "ok"}
	if !o.Began.IsZero() {
		e.Took = o.Time.Sub(o.Began)
	}
	if !e.OK {
		e.Error = strings.TrimSuffix(o.Code+": "+o.Detail, ": ")
	}
	return o, e, nil
}
