package journal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/history"
)

// HopRemoteKMS is the hop of the envelopes of this package.
const HopRemoteKMS = "remote-kms"

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
	e = &history.Envelope{Hop: HopRemoteKMS, Op: o.Op, UID: o.UID, Node: node, KeyID: keyID, KEKID: o.KEKID, OK: o.Code == "ok"}
	if !o.Began.IsZero() {
		e.Took = o.Time.Sub(o.Began)
	}
	if !e.OK {
		e.Error = strings.TrimSuffix(o.Code+": "+o.Detail, ": ")
	}
	return o, e, nil
}
