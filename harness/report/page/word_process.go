package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// process is a change of a process, in the row of what it is.
func (b *builder) process(at time.Time, p history.Process, index int) word {
	w := word{at: placeOfProcess(p), class: classOfProcess(p.State), text: strings.Join(append(strings.Fields(p.Role+" "+nameOf(p)), p.State), " ")}
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

func placeOfProcess(p history.Process) place {
	switch p.Role {
	case history.RolePlugin:
		return place{lane: laneNode, node: p.Node, row: rowPlugin, of: p.KeyID}
	case history.RoleReporter:
		return place{lane: laneNode, node: p.Node, row: rowReporter}
	case history.RoleAPIServer, history.RoleAggregatedAPIServer:
		return place{lane: laneNode, node: p.Node, row: rowAPIServer}
	case history.RoleNode, history.RolePod:
		return place{lane: laneNode, node: p.Node, row: rowNode}
	case history.RoleAggregator:
		return place{lane: laneRollups, row: rowAggregator, of: strings.TrimPrefix(strconv.Itoa(p.Instance), "0")}
	case history.RoleOperator:
		return place{lane: laneRollups, row: rowOperator}
	case history.RoleLoadBalancer:
		return place{lane: laneNetwork, row: rowLoadBalancer}
	case history.RoleRemoteKMS:
		return place{lane: laneNetwork, row: rowRemoteKMS}
	}
	return place{lane: laneNetwork, row: rowEtcd, of: p.Node}
}

func classOfProcess(state string) Class {
	switch state {
	case history.ProcessReady, history.ProcessResumed:
		return OK
	case history.ProcessStarted, history.ProcessStopping:
		return Note
	case history.ProcessPaused, history.ProcessSilenced:
		return Unknown
	case history.ProcessExited:
		return Bad
	}
	return Off
}

// link is a change of a network link. Those that were always well have no row.
func (b *builder) link(at time.Time, l history.Link, index int) word {
	name := strings.TrimSpace(l.From + " → " + l.To + " " + l.Node)
	w := word{at: place{lane: laneNetwork, row: rowLink, of: name}, class: Bad, text: "link " + name + " " + l.State}
	switch l.State {
	case history.LinkOK:
		w.class = OK
	case history.LinkSlow, history.LinkSlowHandshake:
		w.class, w.text = Warn, w.text+" by "+short(l.Delay)
	case history.LinkThrottled:
		w.class, w.text = Warn, w.text+" to "+strconv.Itoa(l.Rate)+" B/s"
	case history.LinkLossy:
		w.class, w.text = Warn, w.text+" by "+strconv.Itoa(l.Loss)+" %"
	case history.LinkStale:
		w.class = Warn
	case history.LinkCut:
		w.text = strings.TrimSpace(w.text + " " + l.Direction)
	}
	if _, known := b.open[b.mine(w.at)]; !known {
		b.set(w.at, b.began, OK, history.LinkOK, index)
	}
	b.set(w.at, at, w.class, l.State, index)
	return w
}
