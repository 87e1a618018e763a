package live

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/starvation"
)

// queues records when processes of the plane had to wait for a processor, until the recorder ends. The harness may notice nothing of it:
// API servers run with a lower priority.
func (r *recorder) queues() {
	ticker := time.NewTicker(starvation.Period)
	defer ticker.Stop()
	var looks map[history.Process]*starvation.Queue
	last := time.Now()
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-ticker.C:
			if looks = r.readQueues(looks, now, now.Sub(last)); looks == nil {
				return
			}
			last = now
		}
	}
}

// readQueues reads the queues of all processes that run; before are those that ran at the look before, a period ago; nil at the first. It returns
// nil where the system does not count: then nothing is known of queues.
func (r *recorder) readQueues(before map[history.Process]*starvation.Queue, now time.Time, period time.Duration) map[history.Process]*starvation.Queue {
	looks := map[history.Process]*starvation.Queue{}
	for _, p := range r.controlPlane.Running() {
		switch {
		case before[p] != nil:
			looks[p] = before[p]
		case before == nil: // it may have run for long
			looks[p] = &starvation.Queue{}
		default:
			looks[p] = starvation.NewQueue()
		}
		delayed, err := looks[p].Read(p.PID, period)
		if err != nil {
			return nil
		}
		if delayed >= starvation.Waited {
			r.queued(p, now.Add(-delayed), now)
		}
	}
	return looks
}

func (r *recorder) queued(p history.Process, from, to time.Time) {
	r.sink.Record(to, history.RoleHarness, &history.Starvation{Role: p.Role, Node: p.Node, KeyID: p.KeyID, Instance: p.Instance, From: from.Round(0).UTC(), To: to.Round(0).UTC(), Queued: true})
}
