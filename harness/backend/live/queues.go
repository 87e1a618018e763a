package live

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/stall"
)

// queues records when processes of the plane had to wait for a processor, until the recorder ends. The harness may notice nothing of it:
// API servers run with a lower priority.
func (r *recorder) queues() {
	ticker := time.NewTicker(stall.Look)
	defer ticker.Stop()
	looks := map[history.Process]*stall.Queue{}
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-ticker.C:
			if !r.lookAtQueues(looks, now) {
				return
			}
		}
	}
}

// lookAtQueues is false where the system does not count: then nothing is known of queues, as before there was this.
func (r *recorder) lookAtQueues(looks map[history.Process]*stall.Queue, now time.Time) bool {
	living := r.plane.Lives()
	for _, p := range living {
		if looks[p] == nil {
			looks[p] = &stall.Queue{}
		}
		waited, err := looks[p].Look(p.PID)
		if err != nil {
			return false
		}
		if waited >= stall.Late {
			r.queued(p, now.Add(-waited), now)
		}
	}
	if len(looks) > 2*len(living) { // of processes that are gone
		clear(looks)
	}
	return true
}

func (r *recorder) queued(p history.Process, from, to time.Time) {
	r.sink.Record(to, history.RoleHarness, &history.Stall{Role: p.Role, Node: p.Node, KeyID: p.KeyID, Instance: p.Instance, From: from.Round(0).UTC(), To: to.Round(0).UTC(), Queued: true})
}
