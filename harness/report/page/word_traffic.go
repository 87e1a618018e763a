package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// call is one line of a plugin's journal.
func call(c history.Call, deadline time.Duration) word {
	w := word{at: place{node: c.Node, row: rowAnswers, of: c.KeyID}, class: OK}
	if c.Method != "Status" {
		w.at.row = rowEnvelopeCalls
	}
	said := "ok"
	switch {
	case c.Outcome == history.CallAbandoned:
		w.class, said = Bad, "abandoned by the caller"
	case c.Outcome != history.CallOK:
		w.class, said = Bad, strings.TrimSpace(c.Code+" "+c.Text)
	case c.Method == "Status" && c.Healthz != "ok":
		w.class, said = Warn, fmt.Sprintf("healthz %q", c.Healthz)
	}
	if c.Method == "Status" && deadline > 0 && c.Took > deadline && c.Outcome == history.CallOK {
		w.class, said = Bad, said+" after the deadline"
	}
	if c.KEKID != "" {
		said += ", " + c.KEKID
	}
	if len(c.Faults) > 0 {
		said += ", under " + strings.Join(c.Faults, "+")
	}
	w.key = strings.Join([]string{c.Method, string(w.class), said}, "\x00")
	w.text = fmt.Sprintf("%s/%s %s: %s, in %s", c.Node, c.KeyID, c.Method, said, text.Short(c.Took))
	return w
}

// request is one line of an audit log, in the row of the client that made it.
func request(r history.Request) word {
	w := word{at: place{node: r.APIServer, row: rowAPIServer}, class: Quiet}
	switch node := r.Reporter(); {
	case node != "":
		w.at.node, w.at.row = node, rowWrites
	case r.User == contract.AggregatorIdentity:
		w.at = place{row: rowAggregatorWrites}
	}
	if isWrite(r.Verb) {
		w.class = OK
	}
	if r.Code >= 400 || r.Code == 0 {
		w.class = Bad
	}
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	w.key = strings.Join([]string{r.User, r.Verb, what, r.Name, fmt.Sprint(r.Code), r.FieldManager}, "\x00")
	w.text = fmt.Sprintf("%s: %s %s %s → %s, at %s", r.User, r.Verb, what, r.Name, outcome(r), r.APIServer)
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

func isWrite(verb string) bool {
	return slices.Contains([]string{"patch", "update", "create", "delete", "apply"}, verb)
}

func rare(e history.Event) word {
	switch {
	case e.Container != nil:
		return container(*e.Container)
	case e.Envelope != nil:
		x := e.Envelope
		return word{at: place{row: rowHops}, class: okOr(x.OK, Bad), text: fmt.Sprintf("%s: %s uid %s %s %s %s", x.Hop, x.Op, x.UID, x.Node, x.Object, x.Error)}
	case e.Data != nil:
		x := e.Data
		return word{at: place{row: rowObjects}, class: okOr(x.OK, Bad), text: strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", x.Object, x.Op, x.Provider, x.KEKID, x.Error))}
	case e.Metrics != nil:
		return metrics(*e.Metrics)
	case e.Secrecy != nil:
		return secrecy(*e.Secrecy)
	case e.End != nil && !e.End.Complete:
		return word{at: place{row: rowHarness}, class: Bad, text: "the history is incomplete: " + e.End.Problem}
	case e.End == nil: // its JSON is shown with it
		return word{at: place{row: rowHarness}, class: Note, text: string(e.Kind) + ", from " + e.Source}
	}
	return word{at: place{row: rowHarness}, class: Note, text: "the history is complete"}
}

func okOr(ok bool, other Class) Class {
	if ok {
		return OK
	}
	return other
}

func container(c history.Container) word {
	w := word{at: place{node: c.Node, row: rowContainers}, class: Note, text: c.String()}
	if c.State == history.ContainerExited || c.State == history.ContainerOOM {
		w.class = Bad
	}
	return w
}

func metrics(m history.Metrics) word {
	w := word{at: place{node: m.Node, row: rowMetrics}, class: OK}
	var all []string
	for _, p := range m.Plugins {
		state := "no probe yet"
		if p.Healthy != nil {
			state = map[bool]string{true: "healthy", false: "not healthy"}[*p.Healthy]
			if !*p.Healthy {
				w.class = Warn
			}
		}
		w.key += p.KeyID + state + "\x00"
		all = append(all, fmt.Sprintf("%s %s, %d calls, %d errors", p.KeyID, state, p.Calls, p.Errors))
	}
	w.text = m.Node + " metrics: " + strings.Join(all, "; ")
	return w
}

// secrecy is a find of something secret in a log, or how much of it was searched.
func secrecy(s history.Secrecy) word {
	w := word{at: place{row: rowHarness}, class: Quiet, text: fmt.Sprintf("%s: %d lines searched for %d values", s.Log, s.Lines, s.Values)}
	if s.Form != "" {
		w.class, w.text = Bad, fmt.Sprintf("%s holds the %s of %s as %s", s.Log, s.What, s.Object, s.Form)
	}
	return w
}
