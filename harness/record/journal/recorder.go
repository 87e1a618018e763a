package journal

import (
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
	r.Sink.Record(o.Time, HopRemoteKMS, payload)
	return nil
}
