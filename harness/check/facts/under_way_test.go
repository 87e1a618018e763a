package facts

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// A write that was seen before the end is explained by a request that the API server finished answering after it; what
// was only received after the end is no part of the run.
func TestRequestsUnderWayAtTheEndStillExplain(t *testing.T) {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := func(seq int64, received time.Duration) history.Event {
		return history.Event{Seq: seq, At: end.Add(time.Second), Kind: history.KindRequest, Request: &history.Request{Received: end.Add(received)}}
	}
	got := judged([]history.Event{
		{Seq: 1, At: end.Add(-time.Second), Kind: history.KindRun, Run: &history.Run{}},
		{Seq: 2, At: end, Kind: history.KindPhase, Phase: &history.Phase{Name: history.PhaseEnd}},
		request(3, -time.Millisecond), request(4, time.Millisecond),
	})
	if len(got) != 3 || got[1].Seq != 3 || !got[1].At.Equal(end) || got[2].Kind != history.KindPhase {
		t.Fatalf("judged events: %+v", got)
	}
}
