package page

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// word is the text of one event, with its place on the page and its class.
type word struct {
	at    place
	class Class
	text  string
	key   string
}

// maxText bounds the text of one event, in characters.
const maxText = 300

// word makes the text of an event, and records in the states what it changes.
func (b *builder) word(e history.Event, index int) word {
	switch {
	case e.Run != nil:
		return word{at: place{row: rowHarness}, class: Note, text: fmt.Sprintf("run of %s on %s, seed %d", e.Run.Scenario, e.Run.Backend, e.Run.Seed)}
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

func (b *builder) phase(e history.Event, index int) word {
	p := place{row: rowPhases}
	if e.Phase.Name != history.PhaseEnd {
		b.set(p, e.At, Quiet, string(e.Phase.Name), index)
	}
	return word{at: p, class: Note, text: "phase " + string(e.Phase.Name) + " begins"}
}

func action(a history.Action) word {
	w := word{at: place{row: rowSteps}, class: Note, text: a.ID + " " + actionText(a) + ": " + a.State}
	if a.State == history.ActionFailed {
		w.class, w.text = Bad, w.text+": "+a.Error
	}
	return w
}

func expectation(x history.Expectation) word {
	w := word{at: place{row: rowExpected}, class: OK, text: fmt.Sprintf("%s %s after %s of %s: %s", x.ID, "met", text.Short(x.Took), text.Short(x.Bound), x.Text)}
	if !x.OK {
		w.class, w.text = Bad, fmt.Sprintf("%s NOT met after %s of %s: %s", x.ID, text.Short(x.Took), text.Short(x.Bound), x.Detail)
	}
	return w
}

func expected(x history.Expected) word {
	var nodes []string
	for _, n := range x.Nodes {
		nodes = append(nodes, n.Name+"/"+strings.Join(n.KeyIDs, ","))
	}
	text := "expected to report: " + strings.Join(nodes, " ")
	if !x.KMSActive {
		text = "KMS is not active: nobody is expected to report"
	}
	return word{at: place{row: rowHarness}, class: Note, text: text}
}
