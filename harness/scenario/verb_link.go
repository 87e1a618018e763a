package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbLink breaks a link of the network, or restores it.
const VerbLink Verb = "link"

// modeRestore ends what another mode of the same verb began.
const modeRestore = "restore"

// Link breaks a link of the network, or restores it.
type Link struct {
	From, To string
	// Node is the node whose link it is; empty: all nodes.
	Node string
	// Mode is cut, reset, slow, mute or restore.
	Mode string
	// Delay is what a slow link takes in each direction.
	Delay Duration
}

// Verb implements Action.
func (*Link) Verb() Verb { return VerbLink }

func (l *Link) fields() []field {
	to := keywordField(&l.To, linkTos()...)
	to.check = func(v *validation, at place, _ string) {
		if slices.Contains(linkFroms(), l.From) {
			v.keyword(at, "to (from "+l.From+")", l.To, linkEnds()[l.From])
		}
	}
	return append(ofTarget(required("from", keywordField(&l.From, linkFroms()...)), required("to", to), optional("node", nodeField(&l.Node))),
		required("mode", keywordField(&l.Mode, linkModes()...)), optional("delay", durationField(&l.Delay)))
}

// Ends is the link that is meant.
func (l *Link) Ends() Selector { return Selector{From: l.From, To: l.To, Node: l.Node} }

func (l *Link) target([]string) string {
	return strings.TrimSpace("link " + l.From + " to " + l.To + " " + l.Node)
}

// Describe implements Action.
func (l *Link) Describe() string {
	of := ofNode(l.Node)
	if l.Node == "" && l.To == history.RoleLoadBalancer && l.From != history.RoleReporter {
		of = "" // nodes have no such link
	}
	return "link " + l.From + " → " + l.To + of + ": " + l.Mode + parameters(l, "mode")
}

func (l *Link) harm() string { return harmOf(l) }

// harmOf is the verb and the mode, unless it restores.
func harmOf(a Action) string {
	if mode, _ := Params(a)["mode"].(string); mode != modeRestore {
		return string(a.Verb()) + "-" + mode
	}
	return ""
}

// Undo implements Undoable.
func (l *Link) Undo() Action {
	if l.Mode == modeRestore {
		return nil
	}
	return RestoreLink(l.Ends())
}

// RestoreLink is the action that makes a link whole.
func RestoreLink(s Selector) *Link {
	return &Link{From: s.From, To: s.To, Node: s.Node, Mode: modeRestore}
}

// Lasts implements Lasting.
func (l *Link) Lasts() bool { return l.Mode != modeRestore }

// EndedBy implements Lasting.
func (l *Link) EndedBy(b Action) bool {
	other, ok := b.(*Link)
	return ok && other.Mode == modeRestore && other.Ends().covers(l.Ends())
}

// linkEnds are the links that exist, from and to.
func linkEnds() map[string][]string {
	lb, api := history.RoleLoadBalancer, history.RoleAPIServer
	return map[string][]string{
		history.RoleReporter:   {api, lb},
		history.RoleAggregator: {lb},
		"client":               {lb},
		"harness":              {lb},
		lb:                     {api},
		api:                    {history.RoleEtcd},
		history.RoleNode:       {history.Network},
	}
}

func linkFroms() []string {
	return strings.Fields("reporter aggregator apiserver load-balancer client harness node")
}

// linkTos are the other ends of any link.
func linkTos() []string {
	var all []string
	for _, from := range linkFroms() {
		all = append(all, linkEnds()[from]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func linkModes() []string { return strings.Fields("cut reset slow mute restore") }

func (l *Link) check(v *validation, at place) {
	if l.From == history.RoleReporter && slices.Contains(linkEnds()[l.From], l.To) {
		c, to := v.scenario.Topology.Connectivity, history.RoleAPIServer
		if c != history.ConnectLoopback {
			to = history.RoleLoadBalancer
		}
		v.keyword(at.at("to"), "to (from reporter with connectivity "+c+")", l.To, []string{to})
	}
	if l.From == history.RoleNode { // its whole connection
		v.keyword(at.at("mode"), "mode (from node to network)", l.Mode, []string{"cut", modeRestore})
		if v.scenario.Topology.ControlPlanes == 1 {
			v.add(at, "a link from node to network with one control-plane node, expected several: alone it reaches all that it needs")
		}
	}
	switch {
	case l.Mode == history.LinkSlow && l.Delay.IsZero():
		v.add(at, "mode slow without a delay, expected one such as delay: 200ms")
	case l.Mode != history.LinkSlow && !l.Delay.IsZero():
		v.add(at.at("delay"), "a delay with mode %s, expected it with slow only", quote(l.Mode))
	}
}
