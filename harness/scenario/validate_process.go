package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// roles of processes that an action can name; those of a node first.
func roles() []string {
	return append(nodeRoles(), history.RoleAggregator, history.RoleOperator, history.RoleEtcd, history.RoleRemoteKMS, history.RoleLoadBalancer)
}

func nodeRoles() []string { return append(podRoles(), history.RolePod, history.RoleNode) }

// podRoles are the processes of the API server's pod, each in a container of its own.
func podRoles() []string {
	return []string{history.RoleReporter, history.RolePlugin, history.RoleAPIServer}
}

// wholeVerbs are what can be done to what is not one process.
func wholeVerbs() map[string][]Verb {
	return map[string][]Verb{
		history.RoleNode: {VerbStart, VerbKill, VerbPause, VerbResume, VerbRestart},
		history.RolePod:  {VerbStart, VerbStop, VerbKill, VerbRestart},
		// It is a part of the harness's own process, which cannot stand still in part.
		history.RoleOperator: {VerbStart, VerbStop, VerbKill, VerbRestart},
	}
}

// Values of restart's with.
const (
	WithKill      = "kill"      // a crash
	WithContainer = "container" // the container around the process is killed
)

// Releases of the operator.
const (
	ReleaseNewer = "newer" // knows every type of encryption
	ReleaseOlder = "older" // does not know KMS
)

// Releases are the values of release, the default first.
func Releases() []string { return []string{ReleaseNewer, ReleaseOlder} }

// operatorRelease checks of which release an operator is started.
func (v *validation) operatorRelease(a Action, at place) {
	text, written := a.Params["release"].(string)
	switch {
	case !written:
	case a.Process.Role != history.RoleOperator:
		v.add(at, "release with role %s, expected it with operator only", a.Process.Role)
	default:
		v.word(at, "release", text, Releases())
	}
}

func (v *validation) process(a Action, at place) {
	p := a.Process
	if !v.word(at.at("role"), "role", p.Role, roles()) {
		return
	}
	v.someNodes(at.at("node"), p.Node)
	v.keyID(at.at("keyID"), p.KeyID)
	v.selectedAPIServer(at.at("apiServer"), p.APIServer)
	if p.APIServer != "" && !slices.Contains(ownRoles(), p.Role) {
		v.add(at.at("apiServer"), "role %s is no API server's own, expected it with %s only", p.Role, oneOf(ownRoles()))
	}
	if p.Node != "" && !slices.Contains(nodeRoles(), p.Role) {
		v.add(at.at("node"), "role %s has no node, expected none", p.Role)
	}
	if p.KeyID != "" && p.Role != history.RolePlugin {
		v.add(at.at("keyID"), "role %s has no keyID, expected none", p.Role)
	}
	v.instance(p, at.at("instance"))
	v.operatorRelease(a, at.at("release"))
	v.unlisted(a, at)
	v.overlap(a, at)
	v.whole(a, at)
	v.with(a, at)
}

// unlisted checks the start of a plugin that nobody is given.
func (v *validation) unlisted(a Action, at place) {
	p, listed := a.Process, v.scenario.Topology.KeyIDs
	for _, other := range v.scenario.Actions() {
		if other.Verb == VerbEncryption {
			listed = append(slices.Clone(listed), other.Texts("keyIDs")...)
		}
	}
	switch {
	case !a.Unlisted():
	case p.Role != history.RolePlugin:
		v.add(at.at("unlisted"), "unlisted with role %s, expected it with plugin only", p.Role)
	case v.scenario.Topology.ByOperator():
		v.add(at.at("unlisted"), "unlisted with lifecycle operator, expected none: its operator numbers all plugins")
	case p.KeyID == "":
		v.add(at.at("unlisted"), "unlisted without keyID, expected that of the plugin to be started")
	case slices.Contains(listed, p.KeyID):
		v.add(at.at("keyID"), "keyID %s of an unlisted plugin, expected one that neither the topology nor encryption lists", quote(p.KeyID))
	}
}

// overlap checks how long a reporter and its successor run side by side.
func (v *validation) overlap(a Action, at place) {
	_, written := a.Params["overlap"]
	switch {
	case !written:
	case a.Process.Role != history.RoleReporter:
		v.add(at.at("overlap"), "overlap with role %s, expected it with reporter only", a.Process.Role)
	case a.Text("with") != "":
		v.add(at.at("overlap"), "overlap beside with: %s, expected one of them: the old reporter is asked to end", a.Text("with"))
	case v.scenario.Topology.ByOperator():
		v.add(at.at("overlap"), "overlap with lifecycle operator, expected none: its operator restarts reporters itself")
	}
	v.positive(a, "overlap", at)
}

// whole checks what is done to a node or a pod.
func (v *validation) whole(a Action, at place) {
	known, ok := wholeVerbs()[a.Process.Role]
	if !ok || slices.Contains(known, a.Verb) {
		return
	}
	var words []string
	for _, k := range known {
		words = append(words, string(k))
	}
	v.add(at.at("role"), "role %s with %s, expected it with %s", a.Process.Role, a.Verb, oneOf(words))
}

// with checks how something is restarted.
func (v *validation) with(a Action, at place) {
	with, written := a.Params["with"]
	role := a.Process.Role
	switch {
	case role == history.RoleNode && a.Verb == VerbRestart && with != WithKill:
		v.add(at.at("with"), "restart of a node, expected with: kill: it loses its power")
	case !written || with == WithKill:
	case with != WithContainer:
		v.add(at.at("with"), "with is %s, expected kill, container or nothing", quote(a.Text("with")))
	case !slices.Contains(podRoles(), role):
		v.add(at.at("with"), "with is container, expected it with role %s only", oneOf(podRoles()))
	}
}

func (v *validation) instance(p Selector, at place) {
	switch {
	case p.Instance == "":
	case p.Role != history.RoleAggregator:
		v.add(at, "role %s has one instance, expected none", p.Role)
	default:
		known := append(instances()[:max(0, min(v.scenario.Topology.Aggregators, MaxAggregators))], "leader", "standby")
		v.word(at, "instance", p.Instance, known)
	}
}
