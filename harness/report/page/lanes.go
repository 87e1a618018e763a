package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// lane is a group of rows, in the order in which they are shown.
type lane int

const (
	laneScenario lane = iota
	laneRollups
	laneNode
	laneNetwork
	laneData
)

// place is one row: the node of a node's lane, the further API server that it is about, what it shows, and of which plugin, link or
// process.
type place struct {
	node string
	api  string // empty: kube-apiserver, or what all share
	row  rowKind
	of   string
}

func (p place) lane() lane { return rowTexts[p.row].lane }

// rowKind orders the rows of a lane.
type rowKind int

const (
	rowPhases rowKind = iota
	rowSteps
	rowExpected
	rowViolated
	rowHarness
	rowDegraded
	rowAvailable
	rowProgressing
	rowClusterOperator
	rowAggregator
	rowAggregatorWrites
	rowOperator
	rowForeign
	rowAnswers
	rowReport
	rowWrites
	rowAPIServer
	rowPlugin
	rowReporter
	rowNode
	rowEnvelopeCalls
	rowMetrics
	rowContainers
	rowLoadBalancer
	rowLink
	rowEtcd
	rowRemoteKMS
	rowHops
	rowObjects
)

type lanes struct {
	all  []place
	rows map[place]int
}

// need makes sure that there is a row.
func (l *lanes) need(p place) {
	if _, ok := l.rows[p]; !ok {
		l.rows[p] = -1
		l.all = append(l.all, p)
	}
}

// needLine is a line of a row, which there is then.
func (l *lanes) needLine(row rowKind, line int) place {
	p := lineOf(row, line)
	l.need(p)
	return p
}

func lineOf(row rowKind, line int) place {
	p := place{row: row}
	if line > 0 {
		p.of = fmt.Sprint(line + 1)
	}
	return p
}

// nodes are those that have a lane.
func (l *lanes) nodes() []string {
	var all []string
	for _, p := range l.all {
		if p.lane() == laneNode && !slices.Contains(all, p.node) {
			all = append(all, p.node)
		}
	}
	return all
}

// natural puts cp-2 before cp-10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(len(strings.TrimRight(a, digits)), len(strings.TrimRight(b, digits))),
		strings.Compare(strings.TrimRight(a, digits), strings.TrimRight(b, digits)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

const digits = "0123456789"

// group is the lane of a row: its ID and title.
func (p place) group() Group {
	g, shared := sharedGroups[p.lane()]
	if !shared {
		g = Group{ID: "node/" + p.node, Title: p.node}
	}
	if p.api != "" {
		g.ID, g.Title = g.ID+"/"+p.api, g.Title+" of "+p.api
	}
	return g
}

// sharedGroups are the lanes of which there is one.
var sharedGroups = map[lane]Group{laneScenario: {"scenario", "Scenario"}, laneRollups: {"rollups", "Rollups and ClusterOperator"},
	laneNetwork: {"network", "Load balancer and links"}, laneData: {"data", "Encrypted data"}}

// title and help of a row.
func (p place) title() (title, help string) {
	t := rowTexts[p.row]
	if p.of != "" && (p.row == rowSteps || p.row == rowExpected || p.row == rowViolated) {
		return "", t.help // a further line of the same
	}
	return strings.ReplaceAll(t.title, "%", p.of), t.help
}

// rowTexts are the lane, the title and the help of each row. A row that is beside the point matters only when something happens in it.
var rowTexts = map[rowKind]struct {
	lane        lane
	title, help string
	beside      bool
}{
	rowPhases:           {laneScenario, "phases", "The parts of the run. Before and after the steps everything must be well.", false},
	rowSteps:            {laneScenario, "steps, faults", "What the scenario did, and for how long it was in force.", false},
	rowExpected:         {laneScenario, "expected", "The outlined box is the time that was allowed, the filled part what it took.", false},
	rowViolated:         {laneScenario, "violated", "Where something was not as it should be, and the window in which the right thing was due.", false},
	rowHarness:          {laneScenario, "harness", "What the harness noted.", true},
	rowDegraded:         {laneRollups, "Degraded", "KMSPluginsDegraded on the operator CR.", false},
	rowAvailable:        {laneRollups, "Available", "KMSPluginsAvailable on the operator CR.", false},
	rowProgressing:      {laneRollups, "Progressing", "KMSPluginsProgressing on the operator CR.", false},
	rowClusterOperator:  {laneRollups, "CO %", "The condition of the ClusterOperator.", false},
	rowAggregator:       {laneRollups, "aggregator %", "The process of the aggregator.", true},
	rowAggregatorWrites: {laneRollups, "its requests", "API requests of the aggregator; writes are tall.", true},
	rowOperator:         {laneRollups, "operator", "The process of the operator of the API server.", true},
	rowForeign:          {laneRollups, "other changes", "Changes of the watched objects by others.", true},
	rowAnswers:          {laneNode, "plugin % says", "What the plugin answered to Status, from its own journal.", false},
	rowReport:           {laneNode, "report %", "What the operator CR says of this plugin.", false},
	rowWrites:           {laneNode, "writes", "Requests of this node's reporter, from the API server's audit log.", false},
	rowAPIServer:        {laneNode, "API server", "The node's API server, and requests of others to it.", true},
	rowPlugin:           {laneNode, "plugin %", "The process of the plugin.", true},
	rowReporter:         {laneNode, "reporter", "The process of the reporter.", true},
	rowNode:             {laneNode, "node", "The node as a whole, or the API server's pod.", false},
	rowEnvelopeCalls:    {laneNode, "en-/decrypts %", "Encrypt and Decrypt calls, from the plugin's own journal.", true},
	rowMetrics:          {laneNode, "metrics", "What the reporter's metrics said.", true},
	rowContainers:       {laneNode, "containers", "What the container engine told.", false},
	rowLoadBalancer:     {laneNetwork, "load balancer", "The process of the load balancer.", true},
	rowLink:             {laneNetwork, "%", "A network link.", false},
	rowEtcd:             {laneNetwork, "etcd", "The process of etcd.", true},
	rowRemoteKMS:        {laneNetwork, "remote KMS", "The process of the remote KMS.", true},
	rowHops:             {laneData, "hops", "Envelope operations as API server and remote KMS saw them.", true},
	rowObjects:          {laneData, "objects", "Secrets that were written, read back and looked at in etcd.", false},
}

// finishLanes makes groups and rows of the lanes that occurred: scenario, rollups, nodes by name, network, data; those of further API servers behind
// kube-apiserver's.
func (b *builder) finishLanes() {
	slices.SortFunc(b.lanes.all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.lane(), b.lane()), natural(a.node, b.node), cmp.Compare(a.api, b.api), cmp.Compare(a.row, b.row), natural(a.of, b.of))
	})
	for i, p := range b.lanes.all {
		b.lanes.rows[p] = i
		g := p.group()
		if n := len(b.out.Groups); n == 0 || b.out.Groups[n-1].ID != g.ID {
			b.out.Groups = append(b.out.Groups, g)
		}
		title, help := p.title()
		b.out.Rows = append(b.out.Rows, Row{Group: len(b.out.Groups) - 1, Title: strings.TrimSpace(title), Help: help})
	}
}

// markDull finds the rows beside the point in which all was well: no mark, and nothing but good news. The more there is to see, the less is
// seen.
func (b *builder) markDull() {
	for i, p := range b.lanes.all {
		b.out.Rows[i].Dull = rowTexts[p.row].beside
	}
	for _, e := range b.out.Events {
		b.out.Rows[e.Row].Dull = b.out.Rows[e.Row].Dull && calm(e.Class)
	}
	for _, s := range b.out.States {
		b.out.Rows[s.Row].Dull = b.out.Rows[s.Row].Dull && calm(s.Class)
	}
	for _, m := range b.out.Marks {
		if m.Target >= 0 {
			b.out.Rows[m.Target].Dull = false
		}
	}
}

func calm(c Class) bool { return c == OK || c == Quiet || c == Note }
