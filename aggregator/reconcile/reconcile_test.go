package reconcile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// Nothing that is due waits longer than half an interval for a clock that was set meanwhile. A pass follows although the
// clock changes nothing any more.
func TestWakeAfter(t *testing.T) {
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	if got := WakeAfter(time.Time{}, now, 30*time.Second); got != 15*time.Second {
		t.Errorf("nothing due: after %v, expected half an interval", got)
	}
	for due, want := range map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, 3 * time.Second: 3 * time.Second, 2 * time.Minute: 15 * time.Second} {
		if got := WakeAfter(now.Add(due), now, 30*time.Second); got != want {
			t.Errorf("due in %v: after %v, expected %v", due, got, want)
		}
	}
}

// world is an API server in memory, as a Reconciler sees it: what its caches hold and what it returns.
type world struct {
	cached, live State
	fail         map[Target]error
	refreshErr   error
	sent         []Request
	changed      func(Request) // what else changes while a request is carried out
}

func conditionOf(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": "2026-05-08T12:00:00Z"}
}

func object(conditions ...any) map[string]any {
	return map[string]any{"status": map[string]any{"conditions": conditions}}
}

func (w *world) run(r *Reconciler, now time.Time) Action {
	action := r.Begin(now)
	for {
		switch action.Kind {
		case Refresh:
			if w.refreshErr == nil {
				w.cached = w.live
			}
			action = r.Refreshed(w.live, now, w.refreshErr)
		case Write:
			w.sent = append(w.sent, action.Write)
			if w.changed != nil {
				w.changed(action.Write)
			}
			action = r.Wrote(w.fail[action.Write.Target])
		default:
			return action
		}
	}
}

func (w *world) targets() string {
	var out []string
	for _, r := range w.sent {
		out = append(out, string(r.Target))
	}
	return strings.Join(out, " ")
}

func reconciler(w *world, decide func(core.Input, core.Memory) core.Decision) *Reconciler {
	return New(Config{Operator: core.Operators()[0], Interval: time.Second, Decide: decide, Latest: func() State { return w.cached }})
}

var rollup = core.Condition{Type: contract.ConditionDegraded, Status: core.False, Reason: "AsExpected"}

// everything is a decision that asks for all three writes.
func everything(core.Input, core.Memory) core.Decision {
	return core.Decision{Rollups: []core.Condition{rollup}, WriteRollups: true, Remove: core.Removal{Conditions: []string{contract.ConditionProgressing}},
		ClusterOperator: []core.Condition{rollup}, WriteClusterOperator: true}
}

func full() State {
	return State{CR: object(conditionOf(contract.ConditionProgressing, "True")), ClusterOperator: object()}
}

// What is written first, and what a failure holds up.
func TestOrderOfWrites(t *testing.T) {
	failed := errors.New("refused")
	for name, c := range map[string]struct {
		fail map[Target]error
		want string
	}{
		"all well":                             {nil, "rollup cleanup clusteroperator"},
		"no rollups: nothing to unite":         {map[Target]error{TargetRollups: failed}, "rollup cleanup"},
		"rollups that could not be removed":    {map[Target]error{TargetRemoval: failed}, "rollup cleanup"},
		"a union that failed is an error, too": {map[Target]error{TargetUnion: failed}, "rollup cleanup clusteroperator"},
	} {
		w := &world{cached: full(), live: full(), fail: c.fail}
		done := w.run(reconciler(w, everything), time.Now())
		if got := w.targets(); got != c.want {
			t.Errorf("%s: writes %q, expected %q", name, got, c.want)
		}
		if (done.Err != nil) != (c.fail != nil) || !done.Wrote {
			t.Errorf("%s: error %v, wrote %v", name, done.Err, done.Wrote)
		}
	}
}

// Nothing is written from caches, nothing when the API server does not answer, and nothing to objects that do not exist.
func TestReadsBeforeItWrites(t *testing.T) {
	w := &world{cached: full(), live: full(), refreshErr: errors.New("no answer")}
	if done := w.run(reconciler(w, everything), time.Now()); done.Err == nil || len(w.sent) > 0 {
		t.Errorf("no answer to a read: writes %q, error %v", w.targets(), done.Err)
	}
	w = &world{cached: full()}
	if done := w.run(reconciler(w, everything), time.Now()); done.Err != nil || len(w.sent) > 0 {
		t.Errorf("a CR that is gone: writes %q, error %v", w.targets(), done.Err)
	}
	w = &world{}
	if done := w.run(reconciler(w, everything), time.Now()); done.Err != nil || len(w.sent) > 0 {
		t.Errorf("a CR that is not there: writes %q, error %v", w.targets(), done.Err)
	}
	state := full()
	state.ClusterOperator = nil
	w = &world{cached: state, live: state}
	if w.run(reconciler(w, everything), time.Now()); w.targets() != "rollup cleanup" {
		t.Errorf("no ClusterOperator: writes %q", w.targets())
	}
}

// When the rollups go, the ClusterOperator gets the union of what is left on the CR by then, not of what was read before:
// those two never stood there at once.
func TestUnionIsOfWhatIsLeft(t *testing.T) {
	const other = "EncryptionMigrationControllerProgressing"
	before := State{CR: object(conditionOf(other, "True"), conditionOf(contract.ConditionProgressing, "True")), ClusterOperator: object()}
	w := &world{cached: before, live: before}
	w.changed = func(r Request) {
		if r.Target == TargetRemoval {
			w.cached.CR = object(conditionOf(other, "False"))
		}
	}
	if done := w.run(reconciler(w, nil), time.Now()); done.Err != nil {
		t.Fatal(done.Err)
	}
	last := w.sent[len(w.sent)-1]
	if last.Target != TargetUnion || !strings.Contains(string(last.Body), `"status":"False","type":"Progressing"`) {
		t.Errorf("the last write is %s of %s, expected a union in which nothing is progressing", last.Target, last.Body)
	}
}

// What a Reconciler decides from has the rule of the union.
func TestInputHasTheUnion(t *testing.T) {
	rule := contract.Union{Inertia: contract.Inertia{All: 2 * time.Minute}}
	var in core.Input
	r := New(Config{Operator: core.Operators()[0], Interval: time.Second, Union: rule, Latest: func() State { return State{CR: object()} },
		Decided: func(got core.Input, _ core.Decision) { in = got }})
	if r.Begin(time.Now()); !in.Union.Equal(rule) {
		t.Errorf("decides with %+v, expected %+v", in.Union, rule)
	}
}
