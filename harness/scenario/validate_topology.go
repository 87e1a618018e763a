package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func (v *validation) topology() {
	t, at := v.scenario.Topology, place{"spec", "topology"}
	v.number(at.at("controlPlanes"), "controlPlanes", t.ControlPlanes, 1, MaxControlPlanes)
	v.number(at.at("aggregators"), "aggregators", t.Aggregators, 1, MaxAggregators)
	v.keyIDsOf(t, at.at("keyIDs"))
	if v.parser.faults != nil && t.Profile != "" {
		v.keyword(at.at("profile"), "profile", t.Profile, v.parser.faults.Profiles())
	}
	v.apiServers(at.at("apiServers"))
	v.keyword(at.at("start"), "start", t.Start, []string{StartRunning, StartStopped})
	v.keyword(at.at("lifecycle"), "lifecycle", t.Lifecycle, Lifecycles())
	v.operated(t, at)
	if t.CRDs != "" && v.keyword(at.at("crds"), "crds", t.CRDs, variants()) && v.scenario.AnyContract {
		v.add(at.at("crds"), "crds %s without contract, expected %s or %s: the typed list is not in these CRDs", t.CRDs, ContractConditions, ContractHealthReports)
	}
	v.keyword(at.at("connectivity"), "connectivity", t.Connectivity, Connectivities())
	v.keyword(place{"spec", "contract"}, "contract", v.scenario.Contract, Contracts())
	v.keyword(place{"spec", "operator"}, "operator", v.scenario.Operator, Operators())
}

// Connectivities are the values of topology.connectivity, the default first.
func Connectivities() []string {
	return []string{history.ConnectLoopback, history.ConnectService, history.ConnectAltSvc, history.ConnectStream}
}

// variants are the values of topology.crds, the default first.
func variants() []string { return []string{history.CRDsTechPreview, history.CRDsDefault} }

// clusterOperator checks the aggregator's flags.
func (v *validation) clusterOperator() {
	c, at := v.scenario.ClusterOperator, place{"spec", "clusterOperator"}
	list, found := at.at("degradedInertia"), len(v.findings)
	v.texts(list, "inertia", c.DegradedInertia, inertiaForm, "a duration such as 2m, or a condition type and a duration such as NodeControllerDegraded=10m")
	if _, err := contract.ParseInertia(c.DegradedInertia); err != nil && len(v.findings) == found {
		v.add(list, "degradedInertia: %v", err)
	}
}

// keyIDsOf: an operator numbers its keys itself.
func (v *validation) keyIDsOf(t Topology, at place) {
	switch {
	case !t.ByOperator():
		v.keyIDList(at, t.KeyIDs)
	case len(t.KeyIDs) > 0:
		v.add(at, "keyIDs with lifecycle operator, expected none: it begins with clear text and numbers its keys from 1")
	}
}

func (v *validation) keyIDList(at place, ids []string) {
	if len(ids) == 0 || len(ids) > MaxKeyIDs {
		v.add(at, "%d keyIDs, expected 1 to %d, the write key first", len(ids), MaxKeyIDs)
		return
	}
	v.texts(at, "keyID", ids, keyIDForm, "letters, digits and dashes, at most 63")
}

func (v *validation) excused() {
	at := place{"spec", "excused"}
	for i, e := range v.scenario.Excused {
		here := at.index(i)
		v.keyword(here.at("invariant"), "invariant", e.Invariant, v.parser.invariants)
		if len(strings.Fields(e.Reason)) < excuseKeywords {
			v.add(here.at("reason"), "reason is %s, expected a sentence that says why the violation is wanted", quote(e.Reason))
		}
		if slices.IndexFunc(v.scenario.Excused, func(o Excuse) bool { return o.Invariant == e.Invariant }) < i {
			v.add(here.at("invariant"), "invariant %s occurs twice, expected it once", quote(e.Invariant))
		}
	}
}
