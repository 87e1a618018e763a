package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// What a scenario gets that does not say otherwise.
const (
	DefaultControlPlanes = 3
	DefaultAggregators   = 1
	DefaultKeyID         = "1"
)

// Bounds of a topology: what one machine can run.
const (
	MaxControlPlanes = 7
	MaxAggregators   = 3
	MaxKeyIDs        = 8
)

// Wire forms of a report.
const (
	ContractConditions    = history.FormConditions
	ContractHealthReports = history.FormHealthReports
)

// Contracts and Operators are the values of the fields with these names, the default first.
func Contracts() []string { return []string{ContractConditions, ContractHealthReports} }

// Operators whose CR can be reported to.
func Operators() []string { return []string{"kubeapiserver", "openshiftapiserver", "authentication"} }

// defaults are the fields that were left out.
type defaults struct{ keyIDs, start, lifecycle, contract, operator bool }

// setDefaults fills in the fields that were left out. What was written stays, also if it is wrong.
func (s *Scenario) setDefaults(missing defaults) {
	if s.Topology.CRDs == history.CRDsTechPreview {
		s.Topology.CRDs = ""
	}
	if s.Topology.Connectivity == "" {
		s.Topology.Connectivity, s.Topology.AnyConnectivity = history.ConnectLoopback, true
	}
	if missing.lifecycle {
		s.Topology.Lifecycle = LifecycleDirect
	}
	if missing.keyIDs && !s.Topology.ByOperator() {
		s.Topology.KeyIDs = []string{DefaultKeyID}
	}
	if s.Topology.APIServers == nil { // a list that was written stays, also if it is empty
		s.Topology.APIServers = APIServers()[:1]
	}
	if missing.start {
		s.Topology.Start = StartRunning
	}
	if missing.contract {
		s.Contract, s.AnyContract = ContractConditions, true
	}
	if missing.operator {
		s.Operator = Operators()[0]
	}
}

// WithDefaults is s with the defaults in place of what is zero, for scenarios written in Go.
func (s Scenario) WithDefaults() *Scenario {
	if s.Topology.ControlPlanes == 0 {
		s.Topology.ControlPlanes = DefaultControlPlanes
	}
	if s.Topology.Aggregators == 0 {
		s.Topology.Aggregators = DefaultAggregators
	}
	s.setDefaults(defaults{keyIDs: len(s.Topology.KeyIDs) == 0, start: s.Topology.Start == "", lifecycle: s.Topology.Lifecycle == "",
		contract: s.Contract == "", operator: s.Operator == ""})
	return &s
}

// NodeName is the name of the i-th node, from 1.
func NodeName(i int) string { return fmt.Sprintf("cp-%d", i) }

// Nodes are the names of the nodes that are there at the beginning.
func (t Topology) Nodes() []string {
	nodes := make([]string, 0, max(0, min(t.ControlPlanes, MaxControlPlanes)))
	for i := 1; i <= min(t.ControlPlanes, MaxControlPlanes); i++ {
		nodes = append(nodes, NodeName(i))
	}
	return nodes
}

// Actions are all actions of the scenario, in the order of the file, also those within groups.
func (s *Scenario) Actions() []Action {
	count := 0
	Walk(s.Steps, func(step Step) {
		if step.Action != nil {
			count++
		}
	})
	out := make([]Action, 0, count) // thousands, in a long scenario
	Walk(s.Steps, func(step Step) {
		if step.Action != nil {
			out = append(out, step.Action)
		}
	})
	return out
}

// Walk calls f for each step in the order of the file, a group before its steps.
func Walk(steps []Step, f func(Step)) {
	for _, s := range steps {
		f(s)
		Walk(s.Parallel, f)
		if s.Repeat != nil {
			Walk(s.Repeat.Steps, f)
		}
	}
}

// allNodes are the nodes that are there at some time: at the beginning, or added by a step.
func (s *Scenario) allNodes() []string {
	names := map[string]bool{}
	for _, n := range s.Topology.Nodes() {
		names[n] = true
	}
	for _, a := range s.Actions() {
		if n, ok := a.(*Node); ok {
			names[n.Add], names[n.With] = true, true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// allKeyIDs are the plugins that are there at some time.
func (s *Scenario) allKeyIDs() []string {
	ids := map[string]bool{}
	changes := 0
	for _, k := range s.Topology.KeyIDs {
		ids[k] = true
	}
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *APIServer: // the operator numbers its keys, at most one for each change of the configuration
			changes++
			ids[strconv.Itoa(changes)] = true
		case *Process:
			if a.Unlisted {
				ids[a.Target.KeyID] = true
			}
		case *Encryption:
			for _, k := range a.KeyIDs {
				ids[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// What an expression demands of the plugins of keys that are no longer needed: that their reports, their providers or they themselves are gone.
var goneWithItsKey = regexp.MustCompile(`^(reports\.size\(\) == [0-9]+|!\("[^"]*" in report\["[^"]*"\]\)|encryption\["[^"]*"\] == \[.*\]|process\["plugin"\]\.all\(.*== "stopped"\))$`)

// WithLastKey gives the scenario without expectations that the plugin of an old key is gone, and the places of those that differ. OpenShift's operators keep
// the last old key, with its plugin and its reports, until the next one is migrated.
func (s *Scenario) WithLastKey() (out *Scenario, changed []string) {
	copied := *s
	copied.LastKeyStays = true
	copied.Steps, changed = rewritten(s.Steps, "steps", func(e Expectation) string {
		if e.Mode == ModeNever {
			return e.CEL
		}
		var kept []string
		for _, c := range conjuncts(e.CEL) {
			if !goneWithItsKey.MatchString(strings.TrimSpace(c)) {
				kept = append(kept, strings.TrimSpace(c))
			}
		}
		if len(kept) == len(conjuncts(e.CEL)) {
			return e.CEL
		}
		return strings.Join(kept, " && ")
	})
	return &copied, changed
}

// What an expression demands of the health of a plugin that cannot use its KMS: a status, and words of the fake plugin.
var (
	reportedUnhealthy = regexp.MustCompile(`\.status == ["']` + string(contract.StatusUnhealthy) + `["']`)
	reportedDetail    = regexp.MustCompile(`\.detail\.contains\("[^"]*"\)`)
)

// OfAnyPlugin gives the scenario with expectations that any plugin can meet, and the places of those that differ. Where a scenario takes the KMS away, the
// fake plugin answers with a healthz text of its own. Another plugin may answer with an error instead, and in its own words.
func (s *Scenario) OfAnyPlugin() (out *Scenario, changed []string) {
	touched := false
	for _, a := range s.Actions() {
		_, isKMS := a.(*KMS)
		touched = touched || isKMS
	}
	if !touched {
		return s, nil
	}
	copied := *s
	copied.Steps, changed = rewritten(s.Steps, "steps", func(e Expectation) string {
		cel := reasonOfRollup.ReplaceAllStringFunc(e.CEL, func(atom string) string {
			if strings.Contains(atom, contract.ReasonPluginUnhealthy) || strings.Contains(atom, contract.ReasonPluginUnreachable) {
				return StatusForReason(atom)
			}
			return atom
		})
		cel = reportedUnhealthy.ReplaceAllString(cel, `.status != "`+string(contract.StatusHealthy)+`"`)
		return reportedDetail.ReplaceAllString(cel, `.detail != ""`)
	})
	return &copied, changed
}
