package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// maxText bounds the text of one event, in characters.
const maxText = 300

// word makes the text of an event with its class and its place, and records in the states what it changes.
func (b *builder) word(e history.Event, index int) Event {
	switch {
	case e.Run != nil:
		return Event{at: place{row: rowHarness}, Class: Note, Text: fmt.Sprintf("run of %s on %s, seed %d", e.Run.Scenario, e.Run.Backend, e.Run.Seed)}
	case e.Phase != nil:
		return b.phase(e, index)
	case e.Action != nil:
		return action(*e.Action)
	case e.Expectation != nil:
		return expectation(*e.Expectation)
	case e.Expected != nil:
		return expected(*e.Expected)
	case e.Call != nil:
		return call(*e.Call, b.run.Timing.ProbeTimeout)
	case e.Request != nil:
		return request(*e.Request)
	case e.Object != nil:
		return b.object(e.At, *e.Object, index)
	case e.Process != nil:
		return b.process(e.At, *e.Process, index)
	case e.Link != nil:
		return b.link(e.At, *e.Link, index)
	}
	return rare(e)
}

func (b *builder) phase(e history.Event, index int) Event {
	p := place{row: rowPhases}
	if e.Phase.Name != history.PhaseEnd {
		b.set(p, e.At, Quiet, string(e.Phase.Name), index)
	}
	return Event{at: p, Class: Note, Text: "phase " + string(e.Phase.Name) + " begins"}
}

func action(a history.Action) Event {
	w := Event{at: place{row: rowSteps}, Class: Note, Text: a.ID + " " + actionText(a) + ": " + a.State}
	if a.State == history.ActionFailed {
		w.Class, w.Text = Bad, w.Text+": "+a.Error
	}
	return w
}

func expectation(x history.Expectation) Event {
	w := Event{at: place{row: rowExpected}, Class: OK, Text: fmt.Sprintf("%s %s after %s of %s: %s", x.ID, "met", text.Short(x.Took), text.Short(x.Bound), x.Text)}
	if !x.OK {
		w.Class, w.Text = Bad, fmt.Sprintf("%s NOT met after %s of %s: %s", x.ID, text.Short(x.Took), text.Short(x.Bound), x.Detail)
	}
	return w
}

func expected(x history.Expected) Event {
	var nodes []string
	for _, n := range x.Nodes {
		nodes = append(nodes, n.Name+"/"+strings.Join(n.KeyIDs, ","))
	}
	text := "expected to report: " + strings.Join(nodes, " ")
	if !x.KMSActive {
		text = "KMS is not active: nobody is expected to report"
	}
	return Event{at: place{row: rowHarness}, Class: Note, Text: text}
}

// call is one line of a plugin's journal.
func call(c history.Call, deadline time.Duration) Event {
	w := Event{at: place{node: c.Node, row: rowAnswers, of: c.KeyID}, Class: OK}
	if c.Method != "Status" {
		w.at.row = rowEnvelopeCalls
	}
	said := "ok"
	switch {
	case c.Outcome == history.CallAbandoned:
		w.Class, said = Bad, "abandoned by the caller"
	case c.Outcome != history.CallOK:
		w.Class, said = Bad, strings.TrimSpace(c.Code+" "+c.Text)
	case c.Method == "Status" && c.Healthz != "ok":
		w.Class, said = Warn, fmt.Sprintf("healthz %q", c.Healthz)
	}
	if c.Method == "Status" && deadline > 0 && c.Took > deadline && c.Outcome == history.CallOK {
		w.Class, said = Bad, said+" after the deadline"
	}
	if c.KEKID != "" {
		said += ", " + c.KEKID
	}
	if len(c.Faults) > 0 {
		said += ", under " + strings.Join(c.Faults, "+")
	}
	w.key = strings.Join([]string{c.Method, string(w.Class), said}, "\x00")
	w.Text = fmt.Sprintf("%s/%s %s: %s, in %s", c.Node, c.KeyID, c.Method, said, text.Short(c.Took))
	return w
}

// request is one line of an audit log, in the row of the client that made it.
func request(r history.Request) Event {
	w := Event{at: place{node: r.APIServer, row: rowAPIServer}, Class: Quiet}
	switch node := r.Reporter(); {
	case node != "":
		w.at.node, w.at.row = node, rowWrites
	case r.User == contract.AggregatorIdentity:
		w.at = place{row: rowAggregatorWrites}
	}
	if slices.Contains([]string{"patch", "update", "create", "delete", "apply"}, r.Verb) {
		w.Class = OK
	}
	if r.Code >= 400 || r.Code == 0 {
		w.Class = Bad
	}
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	w.key = strings.Join([]string{r.User, r.Verb, what, r.Name, fmt.Sprint(r.Code), r.FieldManager}, "\x00")
	w.Text = fmt.Sprintf("%s: %s %s %s → %s, at %s", r.User, r.Verb, what, r.Name, outcome(r), r.APIServer)
	return w
}

func outcome(r history.Request) string {
	text := fmt.Sprint(r.Code)
	if r.Code == 0 {
		text = "no answer"
	}
	if r.Message != "" {
		text += " " + r.Message
	}
	return text
}

func rare(e history.Event) Event {
	switch {
	case e.Container != nil:
		return container(*e.Container)
	case e.Envelope != nil:
		x := e.Envelope
		return Event{at: place{row: rowHops}, Class: okOr(x.OK, Bad), Text: fmt.Sprintf("%s: %s uid %s %s %s %s", x.Hop, x.Op, x.UID, x.Node, x.Object, x.Error)}
	case e.Data != nil:
		x := e.Data
		return Event{at: place{row: rowObjects}, Class: okOr(x.OK, Bad), Text: strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", x.Object, x.Op, x.Provider, x.KEKID, x.Error))}
	case e.Metrics != nil:
		return metrics(*e.Metrics)
	case e.KEKs != nil:
		return Event{at: place{row: rowHarness}, Class: Quiet, Text: "API server " + e.KEKs.ID + " has kekIDs with the hashes " + strings.Join(e.KEKs.Hashes, ", ")}
	case e.Secrecy != nil:
		return secrecy(*e.Secrecy)
	case e.End != nil && !e.End.Complete:
		return Event{at: place{row: rowHarness}, Class: Bad, Text: "the history is incomplete: " + e.End.Problem}
	case e.End == nil: // its JSON is shown with it
		return Event{at: place{row: rowHarness}, Class: Note, Text: string(e.Kind) + ", from " + e.Source}
	}
	return Event{at: place{row: rowHarness}, Class: Note, Text: "the history is complete"}
}

func okOr(ok bool, other Class) Class {
	if ok {
		return OK
	}
	return other
}

func container(c history.Container) Event {
	w := Event{at: place{node: c.Node, row: rowContainers}, Class: Note, Text: c.String()}
	if c.State == history.ContainerExited || c.State == history.ContainerOOM {
		w.Class = Bad
	}
	return w
}

func metrics(m history.Metrics) Event {
	w := Event{at: place{node: m.Node, row: rowMetrics}, Class: OK}
	var all []string
	for _, p := range m.Plugins {
		state := "no probe yet"
		if p.Healthy != nil {
			state = map[bool]string{true: "healthy", false: "not healthy"}[*p.Healthy]
			if !*p.Healthy {
				w.Class = Warn
			}
		}
		w.key += p.KeyID + state + "\x00"
		all = append(all, fmt.Sprintf("%s %s, %d calls, %d errors", p.KeyID, state, p.Calls, p.Errors))
	}
	w.Text = m.Node + " metrics: " + strings.Join(all, "; ")
	return w
}

// secrecy is a find of something secret in a log, or how much of it was searched.
func secrecy(s history.Secrecy) Event {
	w := Event{at: place{row: rowHarness}, Class: Quiet, Text: fmt.Sprintf("%s: %d lines searched for %d values", s.Log, s.Lines, s.Values)}
	if s.Form != "" {
		w.Class, w.Text = Bad, fmt.Sprintf("%s holds the %s of %s as %s", s.Log, s.What, s.Object, s.Form)
	}
	return w
}

// process is a change of a process, in the row of what it is.
func (b *builder) process(at time.Time, p history.Process, index int) Event {
	w := Event{at: placeOfProcess(p), Class: cmp.Or(classOfProcess[p.State], Off), Text: strings.Join(append(strings.Fields(p.Role+" "+nameOf(p)), p.State), " ")}
	if p.Detail != "" {
		w.Text += ": " + p.Detail
	}
	b.set(w.at, at, w.Class, p.State, index)
	return w
}

func nameOf(p history.Process) string {
	name := p.Node
	if p.KeyID != "" {
		name += "/" + p.KeyID
	}
	if p.Instance != 0 {
		name += strconv.Itoa(p.Instance)
	}
	return name
}

var rowOfRole = map[string]rowKind{
	history.RolePlugin: rowPlugin, history.RoleReporter: rowReporter, history.RoleAPIServer: rowAPIServer, history.RoleAggregatedAPIServer: rowAPIServer,
	history.RoleNode: rowNode, history.RolePod: rowNode, history.RoleAggregator: rowAggregator, history.RoleOperator: rowOperator,
	history.RoleLoadBalancer: rowLoadBalancer, history.RoleRemoteKMS: rowRemoteKMS, history.RoleEtcd: rowEtcd,
}

func placeOfProcess(p history.Process) place {
	at := place{row: rowOfRole[p.Role]}
	switch {
	case at.lane() == laneNode:
		at.node, at.of = p.Node, p.KeyID
	case at.row == rowAggregator:
		at.of = strings.TrimPrefix(strconv.Itoa(p.Instance), "0")
	case at.row == rowEtcd:
		at.of = p.Node
	}
	return at
}

// classOfProcess of what has no class is Off: it was ended.
var classOfProcess = map[string]Class{
	history.ProcessReady: OK, history.ProcessResumed: OK, history.ProcessStarted: Note, history.ProcessStopping: Note,
	history.ProcessPaused: Unknown, history.ProcessSilenced: Unknown, history.ProcessExited: Bad,
}

// link is a change of a network link. Those that were always well have no row.
func (b *builder) link(at time.Time, l history.Link, index int) Event {
	name := strings.TrimSpace(l.From + " → " + l.To + " " + l.Node)
	w := Event{at: place{row: rowLink, of: name}, Class: Bad, Text: "link " + name + " " + l.State}
	switch l.State {
	case history.LinkOK:
		w.Class = OK
	case history.LinkSlow, history.LinkSlowHandshake:
		w.Class, w.Text = Warn, w.Text+" by "+text.Short(l.Delay)
	case history.LinkThrottled:
		w.Class, w.Text = Warn, w.Text+" to "+strconv.Itoa(l.Rate)+" B/s"
	case history.LinkLossy:
		w.Class, w.Text = Warn, w.Text+" by "+strconv.Itoa(l.Loss)+" %"
	case history.LinkStale:
		w.Class = Warn
	case history.LinkCut:
		w.Text = strings.TrimSpace(w.Text + " " + l.Direction)
	}
	if _, known := b.open[b.inShare(w.at)]; !known {
		b.set(w.at, b.began, OK, history.LinkOK, index)
	}
	b.set(w.at, at, w.Class, l.State, index)
	return w
}
