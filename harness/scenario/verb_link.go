package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// LinkRestore is the mode that ends a fault of a link.
const LinkRestore = "restore"

// Link breaks a link of the network, or restores it.
type Link struct {
	From string `yaml:"from" required:"true" target:"true" enum:"reporter,aggregator,apiserver,load-balancer,client,harness,node"`
	To   string `yaml:"to" required:"true" target:"true" refers:"linkEnd" enum:"aggregator,apiserver,etcd,load-balancer,network"` // see linkEnds
	// Node is the node whose link it is; empty: all nodes.
	Node string `yaml:"node,omitempty" target:"true" refers:"nodes" without:"mode=stale" why:"the load balancer has one list of all API servers"`
	Mode string `yaml:"mode" required:"true" enum:"cut,reset,slow,mute,throttled,lossy,slow-handshake,stale,restore" undo:"restore"`
	// Delay is what a slow link takes in each direction, and a handshake on a link with slow-handshake.
	Delay     Duration `yaml:"delay,omitempty" with:"mode=slow,slow-handshake" needed:"200ms" description:"of slow and slow-handshake"`
	Direction string   `yaml:"direction,omitempty" enum:"requests,answers" with:"mode=cut" without:"from=node" why:"a node is cut off in both" description:"what cut loses; both if left out"`
	// Rate of a throttled link is at most that of a fast network.
	Rate int `yaml:"rate,omitempty" minimum:"1" maximum:"1000000000" with:"mode=throttled" needed:"500" description:"of throttled: bytes a second in each direction"`
	Loss int `yaml:"loss,omitempty" minimum:"1" maximum:"99" with:"mode=lossy" needed:"5" description:"of lossy: percent of the segments"`
}

// State is the link's state in a history.
func (l *Link) State() string {
	if l.Mode == LinkRestore {
		return history.LinkOK
	}
	return l.Mode
}

func (l *Link) Target([]string) string {
	return strings.TrimSpace("link " + l.From + " to " + l.To + " " + l.Node)
}

func (*Link) About() string {
	return "breaks a link of the network, or restores it"
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

func (l *Link) Validate(v Validation) {
	if ends := linkEnds()[l.From]; ends != nil {
		v.Keyword("to", "to (from "+l.From+")", l.To, ends)
	}
	if l.From == history.RoleReporter && slices.Contains(linkEnds()[l.From], l.To) {
		c, to := v.Scenario().Topology.Connectivity, history.RoleAPIServer
		switch {
		case c == history.ConnectStream:
			to = history.RoleAggregator
		case c != history.ConnectLoopback:
			to = history.RoleLoadBalancer
		}
		v.Keyword("to", "to (from reporter with connectivity "+c+")", l.To, []string{to})
	}
	if l.From == history.RoleNode { // its whole connection
		v.Keyword("mode", "mode (from node to network)", l.Mode, []string{"cut", LinkRestore})
		if v.Scenario().Topology.ControlPlanes == 1 {
			v.Add("", "a link from node to network with one control-plane node, expected several: alone it reaches all that it needs")
		}
	}
	if l.Mode == history.LinkStale { // a list is one for all nodes
		v.Keyword("from", "from (with mode stale)", l.From, []string{history.RoleLoadBalancer})
	}
}
