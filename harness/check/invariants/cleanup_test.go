package invariants

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An orphan that claims a time to come is as old as its aggregator has known it: one that takes over later has as much longer.
func TestOrphanOfAClockAhead(t *testing.T) {
	start := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	for ahead, later := range map[time.Duration]bool{0: false, time.Minute: true} {
		log := history.NewLog(nil)
		log.Record(start, "engine", &history.Run{Timing: contract.DefaultTiming()})
		log.Record(start.Add(2*time.Second), "backend", &history.Clock{Node: "cp-1", Ahead: ahead})
		log.Record(start.Add(time.Hour), "engine", &history.Phase{Name: history.PhaseEnd})
		v := facts.New(log.Events())
		orphan, bound := span.New(start.Add(5*time.Second), v.Period.To), v.CleanupBound()
		if got := cleaning(v, "cp-1", orphan, bound).Total() < v.Aggregator.Able.Total(); got != later {
			t.Errorf("clock ahead by %v: judged later %v, expected %v", ahead, got, later)
		}
		if cleaning(v, "cp-2", orphan, bound).Total() != v.Aggregator.Able.Total() {
			t.Error("another node's clock counts")
		}
	}
}
