package page

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// process is a change of a process, in the row of what it is.
func (b *builder) process(at time.Time, p history.Process, index int) word {
	w := word{at: placeOfProcess(p), class: cmp.Or(classOfProcess[p.State], Off), text: strings.Join(append(strings.Fields(p.Role+" "+nameOf(p)), p.State), " ")}
	if p.Detail != "" {
		w.text += ": " + p.Detail
	}
	b.set(w.at, at, w.class, p.State, index)
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
func (b *builder) link(at time.Time, l history.Link, index int) word {
	name := strings.TrimSpace(l.From + " → " + l.To + " " + l.Node)
	w := word{at: place{row: rowLink, of: name}, class: Bad, text: "link " + name + " " + l.State}
	switch l.State {
	case history.LinkOK:
		w.class = OK
	case history.LinkSlow, history.LinkSlowHandshake:
		w.class, w.text = Warn, w.text+" by "+text.Short(l.Delay)
	case history.LinkThrottled:
		w.class, w.text = Warn, w.text+" to "+strconv.Itoa(l.Rate)+" B/s"
	case history.LinkLossy:
		w.class, w.text = Warn, w.text+" by "+strconv.Itoa(l.Loss)+" %"
	case history.LinkStale:
		w.class = Warn
	case history.LinkCut:
		w.text = strings.TrimSpace(w.text + " " + l.Direction)
	}
	if _, known := b.open[b.inShare(w.at)]; !known {
		b.set(w.at, b.began, OK, history.LinkOK, index)
	}
	b.set(w.at, at, w.class, l.State, index)
	return w
}
