package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbLink breaks a link of the network, or restores it.
const VerbLink Verb = "link"

// LinkRestore is the mode that ends a fault of a link.
const LinkRestore = "restore"

// Link breaks a link of the network, or restores it.
type Link struct {
	From, To string
	// Node is the node whose link it is; empty: all nodes.
	Node string
	// Mode is one of linkModes.
	Mode string
	// Delay is what a slow link takes in each direction, and a handshake on a link with slow-handshake.
	Delay Duration
	// Direction is what a cut link loses: requests or answers; empty: both.
	Direction string
	// Rate of a throttled link in each direction, in bytes a second; Loss of a lossy link, in percent.
	Rate, Loss int
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
		required("mode", keywordField(&l.Mode, linkModes()...)), optional("delay", durationField(&l.Delay)).doc("of slow and slow-handshake"),
		optional("direction", keywordField(&l.Direction, "requests", "answers")).doc("what cut loses; both if left out"),
		optional("rate", intField(&l.Rate, 1, maxRate)).doc("of throttled: bytes a second in each direction"),
		optional("loss", intField(&l.Loss, 1, 99)).doc("of lossy: percent of the segments"))
}

// maxRate of a throttled link, in bytes a second, is that of a fast network.
const maxRate = 1_000_000_000

// Ends is the link that is meant.
func (l *Link) Ends() Selector { return Selector{From: l.From, To: l.To, Node: l.Node} }

// State is the link's state in a history.
func (l *Link) State() string {
	if l.Mode == LinkRestore {
		return history.LinkOK
	}
	return l.Mode
}

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
	if mode, _ := Params(a)["mode"].(string); mode != LinkRestore {
		return string(a.Verb()) + "-" + mode
	}
	return ""
}

// Undo implements Undoable.
func (l *Link) Undo() Action {
	if l.Mode == LinkRestore {
		return nil
	}
	return RestoreLink(l.Ends())
}

// RestoreLink is the action that makes a link whole.
func RestoreLink(s Selector) *Link {
	return &Link{From: s.From, To: s.To, Node: s.Node, Mode: LinkRestore}
}

// Lasts implements Lasting.
func (l *Link) Lasts() bool { return l.Mode != LinkRestore }

// EndedBy implements Lasting.
func (l *Link) EndedBy(b Action) bool {
	other, ok := b.(*Link)
	return ok && other.Mode == LinkRestore && other.Ends().covers(l.Ends())
}

// linkEnds are the links that exist, from and to.
func linkEnds() map[string][]string {
	lb, api := history.RoleLoadBalancer, history.RoleAPIServer
	return map[string][]string{
		history.RoleReporter:   {api, lb, history.RoleAggregator},
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

func linkModes() []string {
	return strings.Fields("cut reset slow mute throttled lossy slow-handshake stale restore")
}

func (l *Link) check(v *validation, at place) {
	if l.From == history.RoleReporter && slices.Contains(linkEnds()[l.From], l.To) {
		c, to := v.scenario.Topology.Connectivity, history.RoleAPIServer
		switch {
		case c == history.ConnectStream:
			to = history.RoleAggregator
		case c != history.ConnectLoopback:
			to = history.RoleLoadBalancer
		}
		v.keyword(at.at("to"), "to (from reporter with connectivity "+c+")", l.To, []string{to})
	}
	if l.From == history.RoleNode { // its whole connection
		v.keyword(at.at("mode"), "mode (from node to network)", l.Mode, []string{"cut", LinkRestore})
		if v.scenario.Topology.ControlPlanes == 1 {
			v.add(at, "a link from node to network with one control-plane node, expected several: alone it reaches all that it needs")
		}
	}
	if l.Mode == history.LinkStale { // a list is one for all nodes
		v.keyword(at.at("from"), "from (with mode stale)", l.From, []string{history.RoleLoadBalancer})
		if l.Node != "" {
			v.add(at.at("node"), "a node with mode stale, expected none: the load balancer has one list of all API servers")
		}
	}
	l.checkParameters(v, at)
}

// checkParameters checks that a mode has its parameter, and no other.
func (l *Link) checkParameters(v *validation, at place) {
	for _, p := range []struct {
		name, modes, example string
		given, needed        bool
	}{
		{"delay", "slow or slow-handshake", "delay: 200ms", !l.Delay.IsZero(), l.Mode == history.LinkSlow || l.Mode == history.LinkSlowHandshake},
		{"rate", "throttled", "rate: 500", l.Rate != 0, l.Mode == history.LinkThrottled},
		{"loss", "lossy", "loss: 5", l.Loss != 0, l.Mode == history.LinkLossy},
	} {
		switch {
		case p.needed && !p.given:
			v.add(at, "mode %s without a %s, expected one such as %s", l.Mode, p.name, p.example)
		case p.given && !p.needed:
			v.add(at.at(p.name), "a %s with mode %s, expected it with %s only", p.name, quote(l.Mode), p.modes)
		}
	}
	switch {
	case l.Direction == "":
	case l.Mode != history.LinkCut:
		v.add(at.at("direction"), "a direction with mode %s, expected it with cut only", quote(l.Mode))
	case l.From == history.RoleNode:
		v.add(at.at("direction"), "a direction from node to network, expected none: a node is cut off in both")
	}
}
