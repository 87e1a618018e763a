package stream

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/contract/healthproto"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// Outbox holds the newest report until the aggregator has written it, and again whenever a stream stands anew or the configuration changes: the
// aggregator knows nothing of a reporter but what it was sent on the present stream. Nothing is queued: a newer report takes the place of an older one.
type Outbox struct {
	// KeyIDs of the reporter's plugins, the write key first.
	KeyIDs []string
	Timing contract.Timing

	report     *core.Action
	unsent     bool // on the present stream, since the configuration changed
	waits      bool // for the acknowledgement of what was sent last
	sequence   uint64
	generation int64 // of the newest configuration that fits the plugins
}

// Put replaces the report. The one before is not sent any more.
func (o *Outbox) Put(write core.Action) {
	o.report, o.unsent = &write, true
}

// Stood notes that a new stream stands.
func (o *Outbox) Stood() { o.sequence, o.unsent, o.waits = 0, o.report != nil, false }

// Configured notes the configuration that the aggregator sent. One that names other plugins is not observed: the reporter is restarted with those.
func (o *Outbox) Configured(c *healthv1.Configuration) {
	if len(c.GetKeyIds()) == 0 || slices.Equal(c.GetKeyIds(), o.KeyIDs) {
		o.generation = c.GetGeneration()
	}
	o.unsent = o.report != nil
}

// Next is the request to send now; false if there is nothing to send, or the acknowledgement of the one before has not come.
func (o *Outbox) Next(now time.Time) (*healthv1.ReportRequest, bool) {
	if o.waits || !o.unsent {
		return nil, false
	}
	// When the next tick begins, it brings a newer report. A tenth is left for the acknowledgement: one that says that the API server gave no answer
	// must come before the reporter gives up the stream.
	timeout := min(o.report.Next.Sub(now), o.Timing.WriteTimeout) * 9 / 10
	if timeout <= 0 {
		o.unsent = false
		return nil, false
	}
	o.unsent, o.waits = false, true
	o.sequence++
	return &healthv1.ReportRequest{Sequence: o.sequence, Plugins: healthproto.Plugins(o.report.Report, o.report.LastKEKID),
		ObservedGeneration: o.generation, Timeout: durationpb.New(timeout)}, true
}

// Acknowledged notes an acknowledgement. It reports whether it is the one of the newest report, and then the error that it stands for.
func (o *Outbox) Acknowledged(a *healthv1.Acknowledgement) (newest bool, err error) {
	if a.GetSequence() != o.sequence || !o.waits {
		return false, nil
	}
	o.waits = false
	return !o.unsent, errorOf(a)
}
