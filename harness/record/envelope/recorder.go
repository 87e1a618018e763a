package envelope

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Recorder records the envelopes of API server logs.
type Recorder struct {
	Log *history.Log
	// Now gives the year and the time zone that klog leaves out; it must be the zone of the API servers.
	Now func() time.Time
}

// Line records one line of the log of the API server on node.
func (r *Recorder) Line(node string, line []byte) error {
	l, ok, err := Decode(node, string(line), r.Now())
	if !ok || err != nil {
		return err
	}
	r.Log.Record(l.At, "log/"+node, &l.Envelope)
	return nil
}
