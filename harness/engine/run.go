package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// source names the engine in the history.
const source = "engine"

// Run runs a scenario on an environment that was prepared for it. What happened is in the history, which always ends
// with an End event: a history without one was cut. The error says that the scenario could not be run to its end, not
// that it failed.
func Run(ctx context.Context, env backend.Environment, s *scenario.Scenario, opts Options) error {
	r, err := newRun(env, s, opts.withDefaults())
	if err != nil {
		return fmt.Errorf("run scenario %s: %w", s.Name, err)
	}
	cancel := r.opts.Log.Subscribe(r.queue.push)
	defer cancel()
	r.concurrent = func(f func(context.Context)) { r.opts.Runtime.Go(func() { f(ctx) }) }
	err = r.phases(ctx)
	r.opts.Runtime.Join()
	if err = errors.Join(err, r.end(ctx, err)); err != nil {
		return fmt.Errorf("run scenario %s: %w", s.Name, err)
	}
	return nil
}

// run is the state of one run. Only the engine's goroutine uses it, but for the queue and the history.
type run struct {
	env      backend.Environment
	scenario *scenario.Scenario
	opts     Options
	metadata history.Run
	compiler *view.Compiler
	any      string // the node that "any" stands for

	queue   queue
	state   *view.State
	version int       // of the state: how often it changed
	looking int       // expectations that look at it
	stirred bool      // something has changed since the task was advanced
	due     time.Time // when it must be, whatever happens; zero for never
	now     time.Time // the instant up to which everything is folded; never goes back
	began   time.Time // of the steps

	concurrent func(func(context.Context)) // runs an action beside the engine, with the run's context
	results    map[string]history.Action   // ended actions by ID
	done       []scenario.Action           // actions of steps that were begun, resolved: what healing undoes
	failed     bool                        // no further step begins
	missed     []missed                    // expectations that failed, in time
}

// missed is an expectation that failed, and the values that it failed by.
type missed struct {
	id   string
	seen []string
}

// miss notes that an expectation failed. It returns the one that failed in the same way before, if any: each value that
// this one failed by, that one had failed by too. Without KeepGoing, or for a control, the run is over.
func (r *run) miss(id string, seen []string, control bool) (repeats string) {
	for _, m := range r.missed {
		if len(seen) > 0 && !slices.ContainsFunc(seen, func(s string) bool { return !slices.Contains(m.seen, s) }) {
			repeats = m.id
			break
		}
	}
	r.missed = append(r.missed, missed{id, seen})
	r.failed = r.failed || control || !r.opts.KeepGoing
	return repeats
}

func newRun(env backend.Environment, s *scenario.Scenario, opts Options) (*run, error) {
	compiler := opts.Compiler
	if compiler == nil {
		var err error
		if compiler, err = view.NewCompiler(); err != nil {
			return nil, err
		}
	}
	nodes := env.Nodes()
	if len(nodes) == 0 {
		return nil, errors.New("the environment has no node, expected at least one")
	}
	drawn := nodes[rand.New(rand.NewPCG(uint64(opts.Seed), 0)).IntN(len(nodes))]
	r := &run{env: env, scenario: s, opts: opts, compiler: compiler, any: drawn, state: view.New(drawn),
		now: opts.Began, results: map[string]history.Action{}}
	r.queue.wake = opts.Runtime.Wake
	r.metadata = r.head()
	if err := r.metadata.Timing.Validate(); err != nil {
		return nil, fmt.Errorf("timing of the environment: %w", err)
	}
	r.record(opts.Began, &r.metadata)
	r.record(opts.Began, &history.Phase{Name: history.PhaseStart})
	return r, nil
}

// head completes what the environment knows about the run.
func (r *run) head() history.Run {
	h := r.env.RunMetadata()
	h.Schema, h.Scenario, h.File = history.Schema, r.scenario.Name, r.scenario.File
	h.Title, h.Area = r.scenario.Title, r.scenario.Area
	h.Seed, h.Reproduce, h.SourceOnly, h.Plugin = r.opts.Seed, r.opts.Reproduce, r.opts.SourceOnly, r.opts.Plugin
	h.Timing.BackOff = r.opts.BackOff
	h.OperatorUnderTest = r.opts.operatorOf(r.scenario)
	if r.opts.Backend != "" {
		h.Backend = r.opts.Backend
	}
	h.Excused = nil
	for _, e := range r.scenario.Excused {
		h.Excused = append(h.Excused, history.Excuse{Invariant: e.Invariant, Reason: e.Reason})
	}
	return h
}

func (r *run) record(at time.Time, payload any) { r.opts.Log.Record(at, source, payload) }

func (r *run) phase(name history.PhaseName) {
	r.record(r.opts.Runtime.Now(), &history.Phase{Name: name})
}

// progress tells a line with the time since the run began.
func (r *run) progress(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.opts.Progress(fmt.Sprintf("[%5.1fs] %s", r.opts.Runtime.Now().Sub(r.opts.Began).Seconds(), line))
}

// end drains the recorders and closes the history, also after ctx ended: events that a file still has would otherwise be
// missing, and the checker would report calls without requests.
func (r *run) end(ctx context.Context, problem error) error {
	r.phase(history.PhaseEnd)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Limits.Finish)
	defer cancel()
	err := r.env.Finish(ctx)
	if err != nil {
		err = fmt.Errorf("end the recording: %w", err)
	}
	end := history.End{Complete: true}
	if whole := errors.Join(problem, err); whole != nil {
		end = history.End{Problem: whole.Error()}
	}
	r.record(r.opts.Runtime.Now(), &end)
	return err
}

// resolveAction puts the drawn node in for "any", nothing for "all", and durations in for their texts.
func (r *run) resolveAction(a scenario.Action) (scenario.Action, error) {
	a = scenario.RenameNodes(a, r.node)
	resolved, err := scenario.Resolve(a, r.metadata.Timing, r.opts.Faults)
	if err != nil {
		return a, err
	}
	return resolved, nil
}

func (r *run) node(name string) string {
	switch name {
	case scenario.NodeAny:
		return r.any
	case scenario.NodeAll:
		return ""
	default:
		return name
	}
}

// queue takes events from the history's lock to the engine's goroutine, in order. It is not bounded: a recorder that
// waits for the engine would be late with every event after.
type queue struct {
	mu     sync.Mutex
	events []history.Event
	first  int // of those that wait
	wake   func()
}

func (q *queue) push(e history.Event) {
	q.mu.Lock()
	q.events = append(q.events, e)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) pop() (history.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == len(q.events) {
		return history.Event{}, false
	}
	e := q.events[q.first]
	q.events[q.first] = history.Event{}
	if q.first++; q.first == len(q.events) {
		q.events, q.first = q.events[:0], 0
	}
	return e, true
}
