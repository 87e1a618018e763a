package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// world is a control plane of three nodes in virtual time: nothing runs beside the
// engine, Wait lets the model go on until something happens.
type world struct {
	t      *testing.T
	log    *history.Log
	now    time.Time
	woken  bool
	agenda []appointment

	nodes   []string
	broken  map[string]bool // by node: its plugin answers with an error
	down    map[string]bool // by role/node
	started time.Time       // of the run, for readable times

	actions []string      // that were done, with their instants
	latency time.Duration // from a change to a visible object
	react   func(scenario.Action) error
	finish  error
	opts    engine.Options // what tests add
}

type appointment struct {
	at time.Time
	do func()
}

func timing() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond,
		WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

func newWorld(t *testing.T) *world {
	start := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	w := &world{t: t, log: history.NewLog(nil), now: start, started: start, nodes: []string{"cp-1", "cp-2", "cp-3"},
		broken: map[string]bool{}, down: map[string]bool{}, latency: time.Second}
	w.in(0, func() {
		w.expected()
		w.show()
	})
	return w
}

// Runtime.

func (w *world) Now() time.Time { return w.now }
func (w *world) Go(f func())    { f() }
func (w *world) Wake()          { w.woken = true }
func (w *world) Join()          {}

func (w *world) Wait(ctx context.Context, until time.Time) {
	if w.woken || ctx.Err() != nil {
		w.woken = false
		return
	}
	if len(w.agenda) > 0 && (until.IsZero() || !w.agenda[0].at.After(until)) {
		next := w.agenda[0]
		w.agenda = w.agenda[1:]
		w.now = next.at
		next.do()
		return
	}
	if until.IsZero() {
		w.t.Fatalf("at %v: the engine waits for ever", w.now.Sub(w.started))
	}
	w.now = until
}

// in plans something.
func (w *world) in(d time.Duration, do func()) {
	w.agenda = append(w.agenda, appointment{w.now.Add(d), do})
	sort.SliceStable(w.agenda, func(i, j int) bool { return w.agenda[i].at.Before(w.agenda[j].at) })
}

// Environment.

func (w *world) RunMetadata() history.Run {
	return history.Run{Backend: "world", Timing: timing(), Contract: "conditions", Operator: "kubeapiservers", ClusterOperator: "kube-apiserver"}
}
func (w *world) Nodes() []string                     { return slices.Clone(w.nodes) }
func (w *world) Finish(context.Context) error        { return w.finish }
func (w *world) Release(context.Context, bool) error { return nil }

func (w *world) Do(ctx context.Context, a scenario.Action) error {
	w.actions = append(w.actions, fmt.Sprintf("%v %s", w.now.Sub(w.started), describe(a)))
	if w.react != nil {
		if err := w.react(a); err != nil {
			return err
		}
	}
	switch a := a.(type) {
	case *scenario.Inject:
		w.breaks(a.Plugin, true)
	case *scenario.Release:
		w.breaks(a.Plugin, false)
	case *scenario.Process:
		w.process(a)
	case *scenario.Link:
		state := map[string]string{"restore": history.LinkOK, "cut": history.LinkCut}[a.Mode]
		w.log.Record(w.now, "backend", &history.Link{From: a.From, To: a.To, Node: a.Node, State: state})
	case *scenario.Node:
		w.nodes = slices.DeleteFunc(w.nodes, func(n string) bool { return n == a.Remove })
		w.expected()
		w.in(w.latency, w.show)
	}
	return nil
}

func (w *world) breaks(s scenario.Selector, broken bool) {
	for _, n := range w.nodes {
		if s.Node == "" || s.Node == n {
			w.broken[n] = broken
		}
	}
	w.in(w.latency, w.show)
}

func describe(a scenario.Action) string {
	parts := []string{string(scenario.VerbOf(a))}
	s := scenario.Selected(a)
	params := scenario.Params(a)
	if l, ok := a.(*scenario.Link); ok {
		parts = append(parts, l.From, l.To, l.Node)
	}
	parts = append(parts, s.Role, s.Node, s.KeyID, s.Instance)
	for _, name := range []string{"fault", "mode", "op"} {
		text, _ := params[name].(string)
		parts = append(parts, text)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

func (w *world) process(a *scenario.Process) {
	states := map[scenario.Verb]string{scenario.VerbKill: history.ProcessKilled, scenario.VerbStop: history.ProcessStopped,
		scenario.VerbPause: history.ProcessPaused, scenario.VerbSilence: history.ProcessSilenced, scenario.VerbResume: history.ProcessResumed, scenario.VerbStart: history.ProcessReady}
	for _, n := range w.nodes {
		if a.Target.Node == n || a.Target.Node == "" {
			w.log.Record(w.now, "backend", &history.Process{Role: a.Target.Role, Node: n, KeyID: a.Target.KeyID, State: states[a.Do]})
		}
	}
}

func (w *world) expected() {
	e := &history.Expected{KMSActive: true}
	for _, n := range w.nodes {
		e.Nodes = append(e.Nodes, history.ExpectedNode{Name: n, KeyIDs: []string{"1"}})
	}
	w.log.Record(w.now, "backend", e)
}

// show is the operator CR as it is now.
func (w *world) show() {
	o := &history.Object{Resource: "kubeapiservers", Name: "cluster"}
	degraded := history.Condition{Type: contract.ConditionDegraded, Status: "False", Reason: contract.ReasonAsExpected}
	for _, n := range w.nodes {
		e := contract.Entry{KeyID: "1", KEKID: "kek", Status: contract.StatusHealthy, LastChecked: w.now}
		if w.broken[n] {
			e = contract.Entry{KeyID: "1", Status: contract.StatusError, LastChecked: w.now, Detail: "DeadlineExceeded"}
			degraded.Status, degraded.Reason = "True", contract.ReasonPluginUnreachable
		}
		m, err := contract.EncodeMessage([]contract.Entry{e})
		if err != nil {
			w.t.Fatal(err)
		}
		o.Conditions = append(o.Conditions, &history.Condition{Type: contract.ConditionType(n), Status: "True", Message: m})
	}
	available := history.Condition{Type: contract.ConditionAvailable, Status: "True", Reason: contract.ReasonAsExpected}
	o.Conditions = append(o.Conditions, &degraded, &available)
	w.log.Record(w.now, "watch", o)
}

// run runs steps in YAML and gives the history.
func (w *world) run(ctx context.Context, topology, steps string) ([]history.Event, error) {
	w.t.Helper()
	p, err := scenario.NewParser(scenario.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := p.Parse("test.yaml", []byte("apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata:\n  name: test\n  title: A test.\n  area: plugin\n"+
		"spec:\n  topology: {"+topology+"}\n  steps:\n"+steps))
	if err != nil {
		w.t.Fatal(err)
	}
	opts := w.opts
	opts.Log, opts.Runtime, opts.Seed, opts.Progress = w.log, w, 1, func(l string) { w.t.Log(l) }
	opts.Limits = engine.Limits{Action: time.Minute, StartUp: time.Second, Finish: time.Second}
	err = engine.Run(ctx, w, s, opts)
	return w.log.Events(), err
}

// expectations of a history, as "id ok/failed took".
func expectations(events []history.Event) []string {
	var out []string
	for _, e := range events {
		if x := e.Expectation; x != nil {
			word := map[bool]string{true: "ok", false: "failed"}[x.OK]
			out = append(out, fmt.Sprintf("%s %s %v", x.ID, word, x.Took))
		}
	}
	return out
}

func phases(events []history.Event) string {
	var out []string
	for _, e := range events {
		if e.Phase != nil {
			out = append(out, string(e.Phase.Name))
		}
	}
	return strings.Join(out, " ")
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
