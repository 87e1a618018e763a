package choose

import (
	"regexp"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// ofRollups is what expressions demand of an aggregator that promises rollups, and removes the reports of gone nodes.
var ofRollups = regexp.MustCompile(`\b(rollup|clusterOperator)\.|reports\.size\(\) == 0|!\("[^"]*" in report\)`)

// ofAggregator gives the scenario for what the aggregator under test promises. One whose profile is not named promises rollups, and this project's what is
// asked for.
func (f *Fit) ofAggregator(a undertest.Aggregator, backend string) {
	s, own := *f.Scenario, a.Command == ""
	asked, has := contract.AggregatorProfileOf(s.Topology.AggregatorProfile).Name, contract.AggregatorProfileOf(a.Profile).Name
	switch {
	case asked == contract.AggregatorConvergence && own && backend != virtual.Name:
		f.lacks("aggregatorProfile %s without aggregator.command: its bounds take an hour, and %s judges this project's in seconds", asked, virtual.Name)
	case own && a.Profile == "" || has == asked:
	case asked == contract.AggregatorConvergence:
		f.lacks("aggregatorProfile %s: the aggregator under test has the profile %s", asked, has)
	default:
		f.lacksRollups(has)
		s.Topology.AggregatorProfile = has
		f.Scenario = &s
	}
}

func (f *Fit) lacksRollups(profile string) {
	if f.Scenario.Contract != scenario.ContractHealthReports {
		f.lacks("contract %s: an aggregator of the profile %s reads %s", f.Scenario.Contract, profile, scenario.ContractHealthReports)
	}
	scenario.Walk(f.Scenario.Steps, func(step scenario.Step) {
		if step.Expect != nil && ofRollups.MatchString(step.Expect.CEL) {
			f.lacks("expectations of rollups: the aggregator under test has the profile %s", profile)
		}
	})
}
