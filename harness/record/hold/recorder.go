package hold

import (
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder records the journal of one container.
type Recorder struct {
	Sink record.Sink
	// Identity of the program: role, node, keyID, instance.
	Identity history.Process
}

// Line records one line.
func (r *Recorder) Line(line []byte) error {
	at, change, err := Decode(line)
	if err != nil {
		return err
	}
	p := r.Identity
	p.PID, p.State, p.Detail = change.PID, change.State, change.Detail
	r.Sink.Record(at, "hold/"+p.Role+"/"+p.Node, &p)
	return nil
}
