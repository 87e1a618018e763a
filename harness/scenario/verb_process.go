package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Values of Process.With.
const (
	WithKill      = "kill"      // a crash
	WithContainer = "container" // the container around the process is killed
)

// Releases of the operator, reporter and aggregator.
const (
	ReleaseNewer    = "newer"    // that of all tests
	ReleasePrevious = "previous" // of this project
	ReleaseOlder    = "older"    // an operator that does not know KMS
)

// Values of Selector.Pod: the pods share node and keyIDs, and nothing else.
const (
	PodFirst  = "first"
	PodSecond = "second"
)

// Process starts or ends processes.
type Process struct {
	Do     Verb     `yaml:"-"` // VerbStart … VerbRestart
	Target Selector `yaml:",inline" target:"process" only:"role,apiServer,node,keyID,instance,pod"`
	// With is how a restart ends the process; empty: it is asked to end.
	With string `yaml:"with,omitempty" verbs:"restart" enum:"kill,container"`
	// Release and Contract are from now on.
	Release  string   `yaml:"release,omitempty" verbs:"start,restart" enum:"newer,previous,older,1.34,1.35,1.36,1.37" with:"role=operator,reporter,aggregator,apiserver" description:"from now on newer, or the previous release of this project (only local), or, of the operator, older: from before KMS; of a kube-apiserver, that of Kubernetes (only local; quoted)"`
	Contract string   `yaml:"contract,omitempty" verbs:"start,restart" enum:"conditions,healthreports" with:"role=reporter" description:"wire form of the reporter from now on; default that of the scenario"`
	Overlap  Duration `yaml:"overlap,omitempty" verbs:"restart" positive:"true" with:"role=reporter,plugin" description:"of a reporter or a plugin: the new one starts so long before the old one ends"`
	Unlisted bool     `yaml:"unlisted,omitempty" verbs:"start" with:"role=plugin" description:"a plugin beside those of its node, whose socket no API server and no reporter is given"`
}

func (p *Process) Verb() Verb { return p.Do }

// About implements Action.
func (p *Process) About() string {
	return map[Verb]string{
		VerbStart:   "starts what was stopped or killed",
		VerbStop:    "ends processes and waits for them",
		VerbKill:    "kills processes",
		VerbPause:   "lets processes stand still",
		VerbSilence: "cuts processes off from all other machines, while they go on",
		VerbResume:  "lets them go on",
		VerbRestart: "ends and starts processes, or kills and starts them",
	}[p.Do]
}

func (p *Process) Harm() string {
	if p.Do == VerbStart || p.Do == VerbResume {
		return ""
	}
	return string(p.Do) + "-" + p.Target.Role
}

func (p *Process) Lasts() bool {
	return p.Do == VerbStop || p.Do == VerbKill || p.Do == VerbPause || p.Do == VerbSilence
}

func (p *Process) EndedBy(b Action) bool {
	other, ok := b.(*Process)
	if !ok || !other.Target.covers(p.Target) {
		return false
	}
	if p.Do == VerbPause || p.Do == VerbSilence {
		return other.Do == VerbResume || other.Do == VerbKill
	}
	return other.Do == VerbStart
}

// roles of processes that an action can name.
func roles() []string { return tagOf[Selector]("Role", "enum") }

// podRoles are the processes of the API server's pod, each in a container of its own.
func podRoles() []string {
	return []string{history.RoleReporter, history.RolePlugin, history.RoleAPIServer}
}

// groupVerbs are what can be done to a role that is not one process of its own.
func groupVerbs() map[string][]string {
	return map[string][]string{
		history.RoleNode: strings.Fields("start kill pause silence resume restart"),
		history.RolePod:  strings.Fields("start stop kill restart"),
		// It is a part of the harness's own process, which cannot stand still in part.
		history.RoleOperator: strings.Fields("start stop kill restart"),
	}
}

func (p *Process) Validate(v Validation) {
	t := p.Target
	if !slices.Contains(roles(), t.Role) {
		return
	}
	if t.Role == history.RoleOperator && !v.Scenario().Topology.ByOperator() {
		v.Add("role", "role operator, and there is none, expected lifecycle: operator in the topology")
	}
	if t.Instance != "" && t.Role == history.RoleAggregator {
		replicas := []string{"1", "2", "3"}[:max(0, min(v.Scenario().Topology.Aggregators, MaxAggregators))]
		v.Keyword("instance", "instance", t.Instance, append(replicas, "leader", "standby"))
	}
	if known, ok := groupVerbs()[t.Role]; ok && !slices.Contains(known, string(p.Do)) {
		v.Add("role", "role %s with %s, expected it with %s", t.Role, p.Do, oneOf(known))
	}
	p.validateRelease(v)
	if p.Contract != "" && v.Scenario().Topology.Connectivity == history.ConnectStream {
		v.Add("contract", "contract with connectivity stream, expected none: the aggregator writes what reporters stream")
	}
	switch starts := p.Do == VerbStart || p.Do == VerbStop; {
	case t.Pod == "":
	case t.Pod != PodSecond || !starts:
		v.Add("pod", "pod %s with %s, expected second, with start or stop: the first one is there always", t.Pod, p.Do)
	case OfAPIServer(p) == "":
		v.Add("pod", "pod %s of %s, expected apiServer: only Deployments have several pods on a node", t.Pod, history.KubeAPIServer)
	}
	p.validateUnlisted(v)
	p.validateOverlap(v)
	p.validateWith(v)
}

func (p *Process) validateRelease(v Validation) {
	known := map[string][]string{
		history.RoleAPIServer: tagOf[Topology]("Kubernetes", "enum"), history.RoleOperator: {ReleaseNewer, ReleasePrevious, ReleaseOlder},
		history.RoleReporter: {ReleaseNewer, ReleasePrevious}, history.RoleAggregator: {ReleaseNewer, ReleasePrevious},
	}[p.Target.Role]
	if known == nil || !slices.Contains(tagOf[Process]("Release", "enum"), p.Release) {
		return // there is none, or it is reported
	}
	v.Keyword("release", "release", p.Release, known)
	if of := p.Target.APIServer; p.Target.Role == history.RoleAPIServer && of != "" && of != history.KubeAPIServer {
		v.Add("release", "release of %s, expected it of %s only", of, history.KubeAPIServer)
	}
}

func (p *Process) validateUnlisted(v Validation) {
	listed := slices.Clone(v.Scenario().Topology.KeyIDs)
	for _, other := range v.actions {
		if e, ok := other.(*Encryption); ok {
			listed = append(listed, e.KeyIDs...)
		}
	}
	switch {
	case !p.Unlisted || p.Target.Role != history.RolePlugin:
	case v.Scenario().Topology.ByOperator():
		v.Add("unlisted", "unlisted with lifecycle operator, expected none: its operator numbers all plugins")
	case p.Target.KeyID == "":
		v.Add("unlisted", "unlisted without keyID, expected that of the plugin to be started")
	case slices.Contains(listed, p.Target.KeyID):
		v.Add("keyID", "keyID %s of an unlisted plugin, expected one that neither the topology nor encryption lists", quote(p.Target.KeyID))
	}
}

func (p *Process) validateOverlap(v Validation) {
	switch {
	case p.Overlap.IsZero() || p.Target.Role != history.RoleReporter && p.Target.Role != history.RolePlugin:
	case p.With != "":
		v.Add("overlap", "overlap beside with: %s, expected one of them: the old %s is asked to end", p.With, p.Target.Role)
	case v.Scenario().Topology.ByOperator():
		v.Add("overlap", "overlap with lifecycle operator, expected none: its operator restarts reporters and plugins itself")
	}
}

func (p *Process) validateWith(v Validation) {
	role := p.Target.Role
	switch {
	case role == history.RoleNode && p.Do == VerbRestart && p.With != WithKill:
		v.Add("with", "restart of a node, expected with: kill: it loses its power")
	case p.With == WithContainer && !slices.Contains(podRoles(), role):
		v.Add("with", "with is container, expected it with role %s only", oneOf(podRoles()))
	}
}
