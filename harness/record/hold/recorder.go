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
	change, err := Decode(line)
	if err != nil {
		return err
	}
	r.Sink.Record(change.At, "hold/"+r.Identity.Role+"/"+r.Identity.Node, change.Of(r.Identity))
	return nil
}
