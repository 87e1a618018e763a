package check_test

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An invariant of one's own is judged like every other: on a history, after the run.
func ExampleRun() {
	quick := check.Invariant{
		ID:        "QUICK-ANSWERS",
		Statement: "an API server answers every request within a second",
		Source:    "our service level",
		Judge: func(facts *check.Facts) (f check.Finding) {
			for _, e := range facts.Events {
				if e.Kind != history.KindRequest {
					continue
				}
				f.JudgedAt(e.Request.Received, e.At)
				if took := e.At.Sub(e.Request.Received); took > time.Second {
					f.Violate(check.Violation{At: e.At, Seq: e.Seq, Seen: fmt.Sprintf("%s took %v", e.Request.Verb, took), Allowed: "1s"})
				}
			}
			return f
		},
	}

	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := history.NewLog(nil)
	log.Record(begin, "engine", &history.Run{Scenario: "slow-answers", Timing: contract.DefaultTiming()})
	log.Record(begin.Add(3*time.Second), "audit/cp-1", &history.Request{Verb: "get", Code: 200, Received: begin.Add(time.Second)})

	for _, r := range check.Run(log.Events(), quick).Invariants {
		if r.ID == quick.ID {
			fmt.Println(r.Status, r.Violations[0].Seen)
		}
	}
	// Output: failed get took 2s
}
