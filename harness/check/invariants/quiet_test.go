package invariants

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
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
		v := facts.New(refusedAsking(c.every, c.refusal))
		var f Finding
		if judgeRestraint(v, &f); len(f.Violations) != c.broken {
			t.Errorf("%s: %d violations, expected %d: %+v", name, len(f.Violations), c.broken, f.Violations)
		}
	}
}

// TestRestraintOfWhatWasHeldBack: a hundred requests at once are no haste if an API server was paused until then, and are if none was.
func TestRestraintOfWhatWasHeldBack(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	forbidden := history.Refusal{Role: history.RoleAggregator, Mode: history.RefuseForbidden, Code: 403}
	for name, c := range map[string]struct {
		states []string // of the API server at 0, 5 and 10 s
		broken int
	}{
		"held back": {[]string{history.ProcessReady, history.ProcessPaused, history.ProcessResumed}, 0},
		"not":       {[]string{history.ProcessReady}, 1},
	} {
		log := history.NewLog(nil)
		log.Record(begin, "engine", &history.Run{Schema: history.Schema, Timing: contract.DefaultTiming(), Operator: "kubeapiservers", ClusterOperator: "kube-apiserver"})
		log.Record(begin, "backend", &forbidden)
		for i, state := range c.states {
			log.Record(begin.Add(time.Duration(i)*5*time.Second), "backend", &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: state})
		}
		now := begin.Add(10*time.Second + time.Millisecond)
		for range 100 {
			log.Record(now, "audit/cp-1", &history.Request{APIServer: "cp-1", User: contract.AggregatorIdentity, Verb: "list", Resource: "nodes", Code: 403, Received: now, Completed: now})
		}
		log.Record(begin.Add(20*time.Second), "engine", &history.Phase{Name: history.PhaseEnd})
		var f Finding
		if judgeRestraint(facts.New(log.Events()), &f); len(f.Violations) != c.broken {
			t.Errorf("%s: %d violations, expected %d: %+v", name, len(f.Violations), c.broken, f.Violations)
		}
	}
}
