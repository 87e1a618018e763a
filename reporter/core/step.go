package core

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Config is what a reporter is told once, at start. Its Timing must be valid (contract.Timing.Validate).
type Config struct {
	Node   string
	Timing contract.Timing
}

// EventKind says what happened.
type EventKind string

const (
	Timer  EventKind = "timer"  // the instant of the last Wait was reached; also the first event of all
	Probed EventKind = "probed" // all probes of this tick are done
	Wrote  EventKind = "wrote"  // the write of this tick is done, well or badly
)

// Event is what happened, and when.
type Event struct {
	Kind EventKind
	// Now is read from a clock that never goes back (time.Now with its monotonic reading, or virtual time). Only
	// Result.Started is wall-clock time, which may jump.
	Now time.Time
	// Jitter moves the tick after the one that this Timer begins. It is drawn by the caller from [-J, J] and
	// clamped to it.
	Jitter time.Duration
	// Results of a Probed event, in the order of the flags.
	Results []Result
}

// ActionKind says what to do next.
type ActionKind string

const (
	Wait  ActionKind = "wait"  // until Action.Until, then a Timer event
	Probe ActionKind = "probe" // every plugin at once, each with the probe deadline, then a Probed event
	Write ActionKind = "write" // Action.Report, given up at Action.Until, then a Wrote event
)

// Action is the one thing to do next.
type Action struct {
	Kind  ActionKind
	Until time.Time
	// Report and LastKEKID are what a Write carries. LastKEKID is the last key_id that each plugin sent since start,
	// by keyID: the typed form needs one for a plugin that failed, too.
	Report    contract.Report
	LastKEKID map[string]string
	// Next is when the next tick begins: what a Write carries may not be sent from then on.
	Next time.Time
	// Dropped says why this tick's results are not written; empty when nothing was dropped.
	Dropped DropReason
}

// State is all that a reporter remembers. The zero value is a reporter that has just started. It is a value: Step
// never changes the State that it was given.
type State struct {
	probing   bool
	tick      time.Time // begin of the tick that runs, or ran last
	due       time.Time // begin of the next one
	held      *contract.Report
	lastWrite time.Time // begin of the last write
	newest    time.Time // newest lastChecked that was ever handed to a write
	lastKEKID map[string]string
}

// Step is the whole behaviour of a reporter. An event that does not fit the state (a bug of the caller) is answered
// with a Wait for the next tick, so that a loop around it can never run hot.
func Step(cfg Config, s State, ev Event) (State, Action) {
	switch {
	case ev.Kind == Timer && s.held != nil:
		return s.write(cfg, ev.Now)
	case ev.Kind == Timer && !ev.Now.Before(s.due):
		return s.beginTick(cfg, ev)
	case ev.Kind == Probed && s.probing:
		return s.judge(cfg, ev)
	}
	return s.wait("")
}

// beginTick counts the next tick from now, not from when this one was due: after a pause there is one tick at once,
// never a burst of those that were missed.
func (s State) beginTick(cfg Config, ev Event) (State, Action) {
	s.probing, s.tick = true, ev.Now
	s.due = ev.Now.Add(cfg.Timing.Interval + clamp(ev.Jitter, cfg.Timing.Jitter))
	return s, Action{Kind: Probe}
}

func (s State) judge(cfg Config, ev Event) (State, Action) {
	s.probing = false
	report := contract.Report{Node: cfg.Node, Entries: make([]contract.Entry, len(ev.Results))}
	for i, r := range ev.Results {
		report.Entries[i] = r.Entry(cfg.Timing.Interval)
	}
	s.lastKEKID = remember(s.lastKEKID, report.Entries)
	s.held = &report
	return s.write(cfg, ev.Now)
}

// write hands the held report to the caller, or holds or drops it.
func (s State) write(cfg Config, now time.Time) (State, Action) {
	if hold := s.hold(cfg, now); hold > 0 {
		return s, Action{Kind: Wait, Until: now.Add(hold)}
	}
	report := *s.held
	s.held = nil
	if why := s.drop(cfg, report, now); why != "" {
		return s.wait(why)
	}
	s.lastWrite, s.newest = now, newest(report)
	return s, Action{Kind: Write, Until: now.Add(cfg.Timing.WriteTimeout), Report: report, LastKEKID: s.lastKEKID, Next: s.due}
}

// hold is how long a write must still wait to stay I − J behind the one before, although that tick's probes took a
// full deadline and this one's none. It is at most what this tick's probes were allowed to take anyway, so every
// bound of the contract still holds.
func (s State) hold(cfg Config, now time.Time) time.Duration {
	if s.lastWrite.IsZero() {
		return 0
	}
	return cfg.Timing.CadenceMin() - now.Sub(s.lastWrite)
}

func (s State) wait(why DropReason) (State, Action) {
	return s, Action{Kind: Wait, Until: s.due, Dropped: why}
}

// remember copies before it writes, since an earlier Action may still hold the old map.
func remember(last map[string]string, entries []contract.Entry) map[string]string {
	next := make(map[string]string, len(entries))
	for keyID, kekID := range last {
		next[keyID] = kekID
	}
	for _, e := range entries {
		if e.KEKID != "" {
			next[e.KeyID] = e.KEKID
		}
	}
	return next
}

func clamp(jitter, limit time.Duration) time.Duration { return max(-limit, min(limit, jitter)) }
