package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// refusedAsking is a history of an aggregator that is refused for 20 s and asks every so often.
func refusedAsking(every time.Duration, r history.Refusal) []history.Event {
	log, now := history.NewLog(nil), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log.Record(now, "engine", &history.Run{Schema: history.Schema, Timing: contract.DefaultTiming(), Operator: "kubeapiservers", ClusterOperator: "kube-apiserver"})
	log.Record(now, "backend", &r)
	for end := now.Add(20 * time.Second); now.Before(end); now = now.Add(every) {
		log.Record(now, "audit/cp-1", &history.Request{User: contract.AggregatorIdentity, Verb: "get", Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", Code: r.Code, Received: now, Completed: now})
	}
	over := r
	over.Over = true
	log.Record(now, "backend", &over)
	return log.Events()
}

// TestRestraint: what backs off is within its bounds, and what does not is told once.
func TestRestraint(t *testing.T) {
	forbidden := history.Refusal{Role: history.RoleAggregator, Mode: history.RefuseForbidden, Code: 403}
	throttled := history.Refusal{Mode: history.RefuseTooManyRequests, Code: 429, RetryAfter: 2 * time.Second}
	patient := history.Refusal{Mode: history.RefuseTooManyRequests, Code: 429, RetryAfter: time.Minute}
	of := history.Refusal{Role: history.RoleReporter, Mode: history.RefuseForbidden, Code: 403}
	for name, c := range map[string]struct {
		every   time.Duration
		refusal history.Refusal
		broken  int
	}{
		"backs off":                             {400 * time.Millisecond, forbidden, 0},
		"asks every 50 ms":                      {50 * time.Millisecond, forbidden, 1},
		"comes back after Retry-After":          {2 * time.Second, throttled, 0},
		"comes back before Retry-After":         {300 * time.Millisecond, throttled, 1},
		"Retry-After is longer than a deadline": {5 * time.Second, patient, 0},
		"somebody else's refusal":               {50 * time.Millisecond, of, 0},
	} {
		v := newView(refusedAsking(c.every, c.refusal))
		var f Finding
		if v.judgeRestraint(&f); len(f.Violations) != c.broken {
			t.Errorf("%s: %d violations, expected %d: %+v", name, len(f.Violations), c.broken, f.Violations)
		}
	}
}
