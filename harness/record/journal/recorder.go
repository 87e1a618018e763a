package journal

import "github.com/kmsharness/kmsharness/harness/record"

// Recorder records journals.
type Recorder struct{ Sink record.Sink }

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
	at, e, err := DecodeOperation(line)
	if err != nil || e == nil {
		return err
	}
	r.Sink.Record(at, HopRemoteKMS, e)
	return nil
}
