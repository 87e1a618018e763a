package envelope

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder records the envelopes of API server logs.
type Recorder struct {
	Sink record.Sink
	// Now gives the year and the time zone that klog leaves out; it must be the zone of the API servers.
	Now func() time.Time
}

// Line records one line of the log of the API server on node.
func (r *Recorder) Line(node string, line []byte) error {
	l, ok, err := Decode(node, string(line), r.Now())
	if !ok || err != nil {
		return err
	}
	r.Sink.Record(l.At, "log/"+node, &l.Envelope)
	return nil
}
