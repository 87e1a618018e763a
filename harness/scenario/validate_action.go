package scenario

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// ProviderFailure is the fault that needs a profile: its own or that of the topology.
const ProviderFailure = "provider-failure"

// Words for nodes that are no name.
const (
	NodeAny = "any"
	NodeAll = "all"
)

func (v *validation) action(a Action, at place) {
	v.lifecycle(a, at)
	switch a.Verb {
	case VerbInject:
		v.plugin(a.Plugin, at.at("plugin"))
		v.fault(a, at)
	case VerbRelease:
		v.plugin(a.Plugin, at.at("plugin"))
		v.release(a, at)
	case VerbRotate, VerbKMS:
		v.remote(a, at)
	case VerbStart, VerbStop, VerbKill, VerbPause, VerbResume, VerbRestart:
		v.process(a, at)
	case VerbLink:
		v.link(a, at)
	case VerbClock:
		v.clock(a, at)
	case VerbRefuse:
		v.refuse(a, at)
	case VerbWatches:
		v.watches(a, at)
	case VerbCredential:
		v.credential(a, at)
	case VerbNode:
		v.node(a, at)
	case VerbEncryption:
		v.encryption(a, at)
	case VerbAPIServer:
		v.apiServer(a, at)
	case VerbData:
		v.data(a, at)
	case VerbCondition:
		v.condition(a, at)
	case VerbEntries:
		v.entries(a, at)
	case VerbAttempt:
		v.attempt(a, at)
	default:
		v.word(at, "verb", string(a.Verb), verbs())
	}
	v.durations(a, at)
}

// entries checks what stands in the typed list, which only that form has.
func (v *validation) entries(a Action, at place) {
	v.number(at.at("count"), "count", a.Int("count", 0), 0, contract.MaxTypedReports)
	if v.scenario.Contract != ContractHealthReports {
		v.add(at, "entries without contract: healthreports, expected it: the list is of that form")
	}
}

// durations checks the parameters that are durations, one by one.
func (v *validation) durations(a Action, at place) {
	for _, name := range a.durationParams(v.parser.faults) {
		value, ok := a.Params[name]
		if !ok {
			continue
		}
		perNode, many := value.(map[string]any)
		if !many {
			v.durationParam(value, at.at(name))
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(perNode)) {
			v.nodeName(at.at(name, node), node, v.nodes)
			v.durationParam(perNode[node], at.at(name, node))
		}
	}
}

func (v *validation) durationParam(value any, at place) {
	if _, err := resolveValue(value, contract.DefaultTiming()); err != nil {
		v.add(at, "%v", err)
	}
}

// nodeName checks a node against those that exist at some time and the words that are allowed beside them.
func (v *validation) nodeName(at place, name string, allowed []string) {
	if slices.Contains(allowed, name) {
		return
	}
	v.add(at, "node %s is not in the topology, expected %s%s", quote(name), oneOf(allowed), didYouMean(name, allowed))
}

// someNodes checks a selector's node, which may be left out.
func (v *validation) someNodes(at place, name string) {
	if name != "" {
		v.nodeName(at, name, append(slices.Clone(v.nodes), NodeAny, NodeAll))
	}
}

func (v *validation) plugin(s Selector, at place) {
	v.selectedAPIServer(at.at("apiServer"), s.APIServer)
	v.someNodes(at.at("node"), s.Node)
	v.keyID(at.at("keyID"), s.KeyID)
}

func (v *validation) keyID(at place, id string) {
	if v.hashed() {
		if what := notHash(id); id != "" && what != "" {
			v.add(at, "%s", what)
		}
		return
	}
	if id != "" && !slices.Contains(v.keyIDs, id) {
		v.add(at, "keyID %s is not in the topology, expected %s%s", quote(id), oneOf(v.keyIDs), didYouMean(id, v.keyIDs))
	}
}

func (v *validation) fault(a Action, at place) {
	if a.Fault == "" {
		v.add(at.at("fault"), "no fault, expected the name of one")
		return
	}
	if v.parser.faults == nil {
		v.methods(a, at)
		return
	}
	// Parameters that are no valid duration are reported with the others; here they would be reported twice.
	resolved := a
	for _, name := range a.durationParams(v.parser.faults) {
		if value, ok := a.Params[name]; ok {
			d, err := resolveValue(value, contract.DefaultTiming())
			if err != nil {
				return
			}
			resolved = resolved.With(name, d)
		}
	}
	if a.Fault == ProviderFailure && a.Text("profile") == "" {
		if v.scenario.Topology.Profile == "" {
			v.add(at.at("fault"), "%s without a provider, expected profile in the topology or beside the fault", ProviderFailure)
			return
		}
		resolved = resolved.With("profile", v.scenario.Topology.Profile)
	}
	for _, p := range v.parser.faults.CheckFault(a.Fault, a.Method, resolved.Params) {
		where := at.at("fault")
		if p.Param != "" {
			where = at.at(p.Param)
		}
		v.add(where, "%s", p.What)
	}
}

func (v *validation) methods(a Action, at place) {
	if a.Method == "" {
		return
	}
	for _, m := range strings.Split(a.Method, "+") {
		v.word(at.at("method"), "method", m, []string{"Status", "Encrypt", "Decrypt", "all"})
	}
}

func (v *validation) release(a Action, at place) {
	v.methods(a, at)
	if v.parser.faults == nil || a.Fault == "" {
		return
	}
	for _, p := range v.parser.faults.CheckFault(a.Fault, "", nil) {
		if p.Param == "" && v.parser.faults.DurationParams(a.Fault) == nil {
			v.add(at.at("fault"), "%s", p.What)
		}
	}
}
