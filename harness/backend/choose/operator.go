package choose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// ofOperator names what an operator under test cannot be given or asked for: OpenShift's API has no place for it, or it is of this project's operator
// alone.
func (f *Fit) ofOperator() {
	s := f.Scenario
	if !s.Topology.ByOperator() {
		return
	}
	if len(s.Topology.Aggregated()) > 0 {
		f.lacks("the operator under test is that of kube-apiserver, and the scenario has operators of aggregated API servers")
	}
	if operand.NamesMissing(s) {
		f.lacks("operator under test: a missing image: the harness starts its plugins from programs, whatever image it names")
	}
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *scenario.APIServer:
			for section := range a.Sections {
				if section != "vault" {
					f.lacks("operator under test: apiserver.%s: OpenShift's API has Vault only", section)
				}
			}
		case *scenario.Process:
			if a.Release != "" && a.Target.Role == history.RoleOperator {
				f.lacks("operator under test: release %s: the harness has one program of the operator under test", a.Release)
			}
		}
	}
	if slices.Contains(s.Labels, ownOperator) {
		f.lacks("operator under test: the scenario judges a decision of this project's operator")
	}
	scenario.Walk(s.Steps, func(step scenario.Step) {
		if step.Expect == nil {
			return
		}
		for _, word := range ownWords() {
			if strings.Contains(step.Expect.CEL, word) {
				f.lacks("operator under test: %s in an expectation: it is of this project's operator alone", word)
			}
		}
	})
	var changed []string
	if f.Scenario, changed = withLastKey(s); len(changed) > 0 {
		f.Notes = append(f.Notes, "in "+strings.Join(changed, ", ")+" the plugin of an old key and its reports may stay: an operator may keep the last old key until the next is migrated")
	}
}

// ofFullOperator names what the harness cannot do where the operator installs revisions itself, and leaves the ClusterOperator to it.
func (f *Fit) ofFullOperator() {
	if !f.Scenario.Topology.ByOperator() {
		return
	}
	for _, a := range f.Scenario.Actions() {
		switch a.(type) {
		case *scenario.Rollback:
			f.lacks("operator.scope full: rollback: the revision of a pod is that of the operator's installer pod")
		case *scenario.Node:
			f.lacks("operator.scope full: node: a pod begins with the revision of the operator's installer pod, and the harness joins nodes with the newest")
		}
	}
	if !f.Scenario.ClusterOperator.Union().Equal(contract.Union{}) {
		f.lacks("operator.scope full: clusterOperator: a full operator has rules of its own")
	}
	copied := *f.Scenario
	copied.ClusterOperator = fullClusterOperator()
	f.Scenario = &copied
	f.Notes = append(f.Notes, "the operator under test writes the ClusterOperator, and UNION judges it by library-go's rules")
}

// fullClusterOperator are the rules of the kube-apiserver operator (docs/contract.md, "Inertia and Unknown, as in library-go").
func fullClusterOperator() scenario.ClusterOperator {
	return scenario.ClusterOperator{Left: true,
		DegradedInertia: []string{"2m", "NodeControllerDegraded=10m", "StaticPodsDegraded=10m", "GuardControllerDegraded=10m"}}
}

// rollPatience is by how much an operator is slower on kind, where every change is a revision of the pods, and one node after another gets it: a switch
// that takes 30 s elsewhere was seen to take four minutes with three nodes.
const rollPatience = 8

// patient gives an operator more time: asked is Operator.Patience.
func (f *Fit) patient(asked int, backend string) {
	if !f.Scenario.Topology.ByOperator() {
		return
	}
	why := "operator.patience"
	if backend == kind.Name && asked < rollPatience {
		asked, why = rollPatience, "on kind the pods are replaced for every change"
	}
	if asked > 1 {
		f.Scenario = patient(f.Scenario, asked)
		f.Notes = append(f.Notes, fmt.Sprintf("times in seconds that the scenario gives the operator are multiplied by %d (%s)", asked, why))
	}
}

// ownOperator labels scenarios that judge a decision of this project's operator.
const ownOperator = "own-operator"

// ownWords are conditions, reasons and objects that OpenShift's operators do not have.
func ownWords() []string {
	return []string{"KMSPluginCredentialsPending", "KMSPluginDegraded", "Reencrypting", `"PreparingKey"`, "operator.keys == [", "operator.pluginRevision", "operator.revisions"}
}
