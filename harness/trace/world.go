package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// near is how close to the ends of a recording, or to the end of a process, a record may be missing.
const near = 2 * time.Second

// world is what else the history tells: who recorded anything, what ran, which faults were in force.
type world struct {
	from, to  time.Time
	logged    map[string]bool // nodes whose API server's log has any line about envelopes
	journaled map[string]bool // nodes with a plugin's journal
	kms       bool            // there is any record of the remote KMS
	states    []state
	faults    []faultSpan
}

type state struct {
	at                time.Time
	role, node, keyID string
	up                bool
}

type faultSpan struct {
	from, to   time.Time
	target, at string // "cp-2/*"; place in the scenario
	name       string
}

func collect(events []history.Event) *world {
	w := &world{logged: map[string]bool{}, journaled: map[string]bool{}}
	for n := range events {
		e := &events[n]
		switch {
		case e.Envelope != nil && e.Envelope.Hop == APIServer:
			w.logged[e.Envelope.Node] = true
		case e.Envelope != nil && e.Envelope.Hop == RemoteKMS:
			w.kms = true
		case e.Call != nil:
			w.journaled[e.Call.Node] = true
		case e.Process != nil:
			p := e.Process
			up := slices.Contains([]string{history.ProcessStarted, history.ProcessReady, history.ProcessResumed}, p.State)
			w.states = append(w.states, state{e.At, p.Role, p.Node, p.KeyID, up})
		case e.Action != nil && e.Action.State == history.ActionDone:
			w.action(e.At, e.Action)
		case e.Phase != nil && e.Phase.Name != history.PhaseBefore && e.Phase.Name != history.PhaseSteps:
			w.release(e.At, "*")
		}
	}
	if n := len(events); n > 0 {
		w.from, w.to = events[0].At, events[n-1].At
		w.release(w.to, "*")
	}
	return w
}

func (w *world) action(at time.Time, a *history.Action) {
	target := strings.TrimPrefix(a.Target, "plugin ")
	switch a.Verb {
	case "inject":
		w.faults = append(w.faults, faultSpan{from: at, target: target, at: a.ID, name: fmt.Sprint(a.Params["fault"])})
	case "release":
		w.release(at, target)
	}
}

// release ends the faults of target; "*" is every one.
func (w *world) release(at time.Time, target string) {
	for n := range w.faults {
		if f := &w.faults[n]; f.to.IsZero() && (target == "*" || target == "all" || f.target == target || strings.HasSuffix(target, "/*") && strings.HasPrefix(f.target, strings.TrimSuffix(target, "*"))) {
			f.to = at
		}
	}
}

// faultAt is what was in force at a plugin, or at all of its node.
func (w *world) faultAt(node, keyID string, t time.Time) string {
	for _, f := range w.faults {
		if (f.target == "all" || f.target == node+"/*" || keyID != "" && f.target == node+"/"+keyID || keyID == "" && strings.HasPrefix(f.target, node+"/")) &&
			!t.Before(f.from.Add(-near)) && !t.After(f.to.Add(near)) {
			return f.name + " (" + f.at + ")"
		}
	}
	return ""
}

// down says why a process had no part in what happened at t: it did not run, or it came or went about then.
func (w *world) down(role, node, keyID string, t time.Time) (text string, yes bool) {
	up, known := true, false
	for _, s := range w.states {
		if s.role != role || node != "" && s.node != "" && s.node != node || keyID != "" && s.keyID != "" && s.keyID != keyID {
			continue
		}
		if s.at.After(t.Add(-near)) && s.at.Before(t.Add(near)) {
			return strings.TrimSpace("the "+role+" "+node) + " came or went about then", true
		}
		if s.at.Before(t) {
			up, known = s.up, true
		}
	}
	return strings.TrimSpace("the "+role+" "+node) + " did not run", known && !up
}

// atEdge: the recording began or ended about then.
func (w *world) atEdge(t time.Time) bool {
	return t.Before(w.from.Add(near)) || t.After(w.to.Add(-near))
}
