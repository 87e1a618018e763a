package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	maxKEKs = 10_000 // versions of one remote key (fakeplugin/keyring)
)

func (v *validation) remote(a Action, at place) {
	if a.Verb == VerbRotate {
		return // its lag is a duration
	}
	op := a.Text("op")
	if !v.word(at.at("op"), "op", op, append(kekOps(), accessOps()...)) {
		return
	}
	_, kek := a.Params["kek"]
	ofKEK := slices.Contains(kekOps(), op)
	switch {
	case ofKEK && a.Text("node") != "":
		v.add(at.at("node"), "a node with op %s, expected none: a KEK has one state for all nodes; cut and deny are per node", op)
	case !ofKEK && kek:
		v.add(at.at("kek"), "a kek with op %s, expected it with %s only", op, oneOf(kekOps()))
	case kek:
		v.number(at.at("kek"), "kek", a.Int("kek", 0), 1, maxKEKs)
	}
	v.someNodes(at.at("node"), a.Text("node"))
}

// kekOps change the state of a KEK, accessOps the access of a node to the remote KMS.
func kekOps() []string    { return []string{"disable", "enable", "delete"} }
func accessOps() []string { return []string{"deny", "allow", "cut", "restore"} }

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

func (v *validation) link(a Action, at place) {
	if v.word(at.at("from"), "from", a.Link.From, linkFroms()) {
		v.word(at.at("to"), "to (from "+a.Link.From+")", a.Link.To, linkEnds()[a.Link.From])
	}
	v.someNodes(at.at("node"), a.Link.Node)
	mode := a.Text("mode")
	v.word(at.at("mode"), "mode", mode, linkModes())
	if a.Link.From == history.RoleNode {
		v.network(mode, at)
	}
	_, delayed := a.Params["delay"]
	switch {
	case mode == history.LinkSlow && !delayed:
		v.add(at, "mode slow without a delay, expected one such as delay: 200ms")
	case mode != history.LinkSlow && delayed:
		v.add(at.at("delay"), "a delay with mode %s, expected it with slow only", quote(mode))
	}
}

// network is a node's whole connection. A single node has nobody to lose.
func (v *validation) network(mode string, at place) {
	v.word(at.at("mode"), "mode (from node to network)", mode, []string{"cut", "restore"})
	if v.scenario.Topology.ControlPlanes == 1 {
		v.add(at, "a link from node to network with one control-plane node, expected several: alone it reaches all that it needs")
	}
}

// lingers is a reporter that outlives its node.
const lingers = "lingers"

func (v *validation) node(a Action, at place) {
	written := []string{}
	for _, op := range []string{"remove", "add", "replace"} {
		if a.Text(op) != "" {
			written = append(written, op)
		}
	}
	if len(written) != 1 {
		v.add(at, "%d of remove, add and replace, expected one", len(written))
		return
	}
	op := written[0]
	if op == "add" {
		v.newNode(at.at("add"), a.Text("add"), "")
	} else {
		v.nodeName(at.at(op), a.Text(op), append(slices.Clone(v.nodes), NodeAny))
	}
	v.replacement(a, at, op)
}

func (v *validation) replacement(a Action, at place, op string) {
	with := a.Text("with")
	switch {
	case op == "replace" && with == "":
		v.add(at, "replace without with, expected the name of the new node")
	case op != "replace" && with != "":
		v.add(at.at("with"), "with beside %s, expected it with replace only", op)
	case op == "replace":
		v.newNode(at.at("with"), with, a.Text("replace"))
	}
	if r := a.Text("reporter"); r != "" && (op == "add" || r != lingers) {
		v.add(at.at("reporter"), "reporter is %s beside %s, expected lingers beside remove or replace", quote(r), op)
	}
}

// newNode checks the name of a node that a step adds; only the node that it replaces may have it.
func (v *validation) newNode(at place, name, replaces string) {
	switch {
	case !nodeForm.MatchString(name) || name == NodeAny || name == NodeAll:
		v.add(at, "node %s is malformed, expected a DNS label such as cp-4", quote(name))
	case slices.Contains(v.scenario.Topology.Nodes(), name) && name != replaces && !v.removed(name):
		v.add(at, "node %s is there already, expected a new name", quote(name))
	}
}

func (v *validation) removed(name string) bool {
	return slices.ContainsFunc(v.actions, func(a Action) bool {
		return a.Verb == VerbNode && (a.Text("remove") == name || a.Text("replace") == name)
	})
}

// The words of the following actions.
// encryptionTypes are those of spec.encryption.type of the cluster's APIServer configuration.
func encryptionTypes() []string   { return []string{"KMS", "identity", "aescbc", "aesgcm"} }
func conditionStatuses() []string { return []string{"True", "False", "Unknown"} }
func attemptOutcomes() []string   { return []string{"denied", "allowed"} }
func attemptVerbs() []string {
	return strings.Fields("get list watch create update patch apply delete apply-condition apply-rollup")
}

func (v *validation) encryption(a Action, at place) {
	v.word(at.at("type"), "type", a.Text("type"), encryptionTypes())
	_, written := a.Params["keyIDs"]
	switch {
	case written && a.Text("type") == "identity":
		v.add(at.at("keyIDs"), "keyIDs with type identity, expected none: clear text has no key")
	case written:
		v.keyIDList(at.at("keyIDs"), a.Texts("keyIDs"))
	}
}

func (v *validation) data(a Action, at place) {
	v.word(at.at("op"), "op", a.Text("op"), dataOps())
	v.number(at.at("count"), "count", a.Int("count", 1), 1, MaxObjects)
	v.number(at.at("size"), "size", a.Int("size", 1), 1, MaxObjectBytes)
}

func (v *validation) condition(a Action, at place) {
	if t := a.Text("type"); !kubeForm.MatchString(t) {
		v.add(at.at("type"), "type is %s, expected the type of a condition such as NodeControllerDegraded", quote(t))
	}
	if m := a.Text("manager"); len(m) > contract.MaxFieldManagerBytes {
		v.add(at.at("manager"), "manager has %d bytes, expected at most %d", len(m), contract.MaxFieldManagerBytes)
	}
	if !a.Bool("delete") {
		if a.Text("status") == "" {
			v.add(at, "condition without a status, expected True, False or Unknown")
			return
		}
		v.word(at.at("status"), "status", a.Text("status"), conditionStatuses())
		return
	}
	for _, name := range []string{"status", "reason", "message"} {
		if a.Text(name) != "" {
			v.add(at.at(name), "%s of a condition that is deleted, expected none", name)
		}
	}
}

func (v *validation) attempt(a Action, at place) {
	v.nodeName(at.at("as"), a.Text("as"), append(slices.Clone(v.nodes), NodeAny))
	v.word(at.at("expect"), "expect", a.Text("expect"), attemptOutcomes())
	if !v.word(at.at("verb"), "verb", a.Text("verb"), attemptVerbs()) {
		return
	}
	v.someNodes(at.at("node"), a.Text("node"))
	own := strings.HasPrefix(a.Text("verb"), "apply-") // these say themselves what they write
	switch {
	case own && a.Text("resource") != "":
		v.add(at.at("resource"), "resource with verb %s, expected none", a.Text("verb"))
	case !own && a.Text("resource") == "":
		v.add(at, "verb %s without a resource, expected one such as secrets", a.Text("verb"))
	}
}
