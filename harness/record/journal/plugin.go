// Package journal converts the journals of the fake plugin and of the remote KMS model to calls and envelopes of the
// history.
//
// Both journals write a line, in one write, before the plugin or the KMS sends the answer that it describes: every
// answer that a caller has received is in the file. harness/record/tail reads the file.
package journal

import (
	"encoding/json"
	"fmt"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/harness/history"
)

// DecodeCall reads one line of a plugin's journal.
func DecodeCall(line []byte) (*history.Call, error) {
	var c journal.Call
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, fmt.Errorf("plugin journal: %w", err)
	}
	if c.Node == "" || c.KeyID == "" || c.Method == "" || c.Ended.IsZero() {
		return nil, fmt.Errorf("plugin journal: not a call: node, keyID, method or ended is missing")
	}
	return CallOf(c), nil
}

// CallOf is a line of a plugin's journal as the history has it.
func CallOf(c journal.Call) *history.Call {
	return &history.Call{
		Node: c.Node, KeyID: c.KeyID, Method: c.Method, UID: c.UID, Began: c.Began, Ended: c.Ended, Took: c.Ended.Sub(c.Began),
		Outcome: outcome(c.Outcome), Code: c.Code, Text: c.Detail, Healthz: c.Healthz, Version: c.Version, KEKID: c.KEKID,
		HealthzBytes: sizeIfCut(c.HealthzBytes, c.Healthz), KEKIDBytes: sizeIfCut(c.KEKIDBytes, c.KEKID), Faults: c.Faults,
		AskedKEKID: c.RequestKEKID, DEKSource: c.DEKSource,
	}
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
