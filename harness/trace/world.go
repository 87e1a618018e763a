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

// explain finds who does not have the operation, and why.
func (w *world) explain(o *Operation) {
	has := map[string]int{}
	for _, h := range o.Hops {
		has[h.Party]++
	}
	switch {
	case o.UID == "":
		o.gap(o.Hops[0].Party, cause{true, NoUID, fmt.Sprintf("it carried no uid at the %s: an older API server, or a party that does not pass it on", o.Hops[0].Party)})
		return
	case has[Plugin] > 1 || has[RemoteKMS] > 1 || has[APIServer] > 1:
		o.gap(o.Hops[0].Party, cause{true, UIDReused, fmt.Sprintf("more than one operation has this uid: %d lines of the API server, %d calls, %d records of the KMS", has[APIServer], has[Plugin], has[RemoteKMS])})
	}
	edge := cause{w.atEdge(o.Began), Cut, "the recording began or ended about then"}
	if text, down := w.down(history.RoleAPIServer, o.Node, "", o.Began); has[APIServer] == 0 {
		o.gap(APIServer, cause{!w.logged[o.Node], NoLog, "the history has no line of the API server of " + o.Node + " about envelopes: it logs them at verbosity 6 (--vmodule=envelope=6), or its log was not followed"},
			cause{down, Cut, text + ": the line may be lost"}, edge,
			cause{true, Missing, "the API server of " + o.Node + " logged other operations and not this one"})
	}
	if text, down := w.down(history.RolePlugin, o.Node, o.KeyID, o.Began); has[Plugin] == 0 {
		fault := w.faultAt(o.Node, o.KeyID, o.Began)
		o.gap(Plugin, cause{!w.journaled[o.Node], NoLog, "the history has no journal of a plugin of " + o.Node},
			cause{fault != "", Fault, "the fault " + fault + " was in force"}, cause{down, Down, text}, edge,
			cause{true, Missing, "no plugin of " + o.Node + " has a call with this uid"})
	}
	if text, down := w.down(history.RoleRemoteKMS, "", "", o.Began); has[RemoteKMS] == 0 && has[Plugin] > 0 {
		o.gap(RemoteKMS, cause{!w.kms, NoLog, "the history has no record of a remote KMS: the plugin has none, or its journal was not followed"},
			cause{!o.OK, Refused, "the plugin failed the call before its KMS answered: " + o.Error}, cause{down, Down, text}, edge,
			cause{true, Missing, "the KMS recorded other operations and none with this uid: the plugin passed on another one, or none"})
	}
}

// cause of a gap, if it is one.
type cause struct {
	is     bool
	reason Reason
	text   string
}

// gap has the first of the causes.
func (o *Operation) gap(party string, causes ...cause) {
	c := causes[slices.IndexFunc(causes, func(c cause) bool { return c.is })]
	o.Gaps = append(o.Gaps, Gap{party, c.reason, c.text})
}

// likely is the call in whose time something without a uid falls, "" if that is not exactly one.
func (t *Trace) likely(o Operation) string {
	found := ""
	for _, c := range t.Operations {
		for _, h := range c.Hops {
			if h.Party != Plugin || c.UID == "" || c.Op != o.Op || c.Node != o.Node || o.KeyID != "" && c.KeyID != o.KeyID || !covers(h, o.Began) {
				continue
			}
			if found != "" {
				return ""
			}
			found = c.UID
		}
	}
	return found
}

func covers(h Hop, t time.Time) bool {
	return !t.Before(h.Began.Add(-slack)) && !t.After(h.ended().Add(slack))
}
