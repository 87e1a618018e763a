package swarm

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// operatorDrawing draws a seed with an operator.
type operatorDrawing struct{ *drawing }

// operated makes a seed one in which an operator switches the encryption, again and again and often before it is done, while it
// and what it needs come and go.
func (d operatorDrawing) operated(s *scenario.Scenario) {
	s.Title, s.Area = "Whatever comes between an operator and its switches, no object is lost, and the last requested configuration takes effect.", "lifecycle"
	s.Topology.Lifecycle, s.Topology.KeyIDs = scenario.LifecycleOperator, nil
	s.Steps = append(steps{together(append([]steps{d.desiredStates()}, d.beside()...))}, settled()...)
}

// desiredStates are what the cluster's APIServer object asks for, one after another.
func (d operatorDrawing) desiredStates() steps {
	row := steps{step(&scenario.Data{Op: scenario.DataWrite, Count: pick(d.rng, 1, 6, 20), Size: 256})}
	for i := range pick(d.rng, 1, 2, 3, 4) {
		waits := []string{"0I", "1I", "3I", "10I", "20I", "40I"}
		if i == 0 { // it is KMS, for a while: without a plugin there is little to judge
			waits = waits[2:]
		}
		row = append(row, d.desired(i == 0), d.wait(waits...))
	}
	return row
}

func (d operatorDrawing) desired(kms bool) scenario.Step {
	vault := func(key string) scenario.APIServer {
		return scenario.APIServer{Type: scenario.TypeKMS, Sections: map[string]params{"vault": {"vaultKeyPath": "transit/keys/" + key}}}
	}
	all := []scenario.APIServer{vault("one"), vault("two")}
	if !kms {
		all = append(all, scenario.APIServer{Type: scenario.TypeIdentity}, scenario.APIServer{Type: scenario.TypeAESCBC}, scenario.APIServer{Type: scenario.TypeAESGCM})
	}
	what := pick(d.rng, all...)
	if d.rng.IntN(5) == 0 { // one API server gets it later than the others
		node := d.node()
		what.Lag.Nodes = map[string]scenario.Duration{node: scenario.D(pick(d.rng, "1s", "8s"))}
	}
	return step(&what)
}

// beside is what goes wrong meanwhile, each in a row of its own.
func (d operatorDrawing) beside() (disturbances []steps) {
	// One node at most: the others serve meanwhile. What goes, goes as a process, as a pod or with the whole node, always the same.
	gone := scenario.Selector{Node: d.node(), Role: pick(d.rng, history.RoleAPIServer, history.RolePod, history.RoleNode)}
	operator := scenario.Selector{Role: history.RoleOperator}
	cut := &scenario.KMS{Op: scenario.KMSCut}
	all := []func() steps{
		func() steps {
			if d.rng.IntN(2) == 0 {
				return steps{step(&scenario.Process{Do: scenario.VerbRestart, Target: operator, With: scenario.WithKill})}
			}
			return d.killed(operator)
		},
		func() steps { return d.killed(gone) },
		d.balancer,
		func() steps {
			return d.lasts(&scenario.Process{Do: scenario.VerbRestart, Target: operator, Release: scenario.ReleaseOlder},
				&scenario.Process{Do: scenario.VerbRestart, Target: operator, Release: scenario.ReleaseNewer})
		},
		func() steps { return steps{step(&scenario.Rotate{})} },
		func() steps { return d.lasts(cut, scenario.Undo(cut)) },
		d.aggregator,
		d.write,
	}
	if len(d.nodes) < 3 {
		all = slices.Delete(all, 1, 3)
	} else if d.rng.IntN(2) == 0 { // a node comes and goes, which nothing else is about, and all the others are there then
		n := d.setApart()
		all[1] = func() steps { return d.nodeChange(n) }
	}
	d.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, episode := range all[:pick(d.rng, 1, 2, 3)] {
		disturbances = append(disturbances, d.row(episode, "0I", "2I", "7I", "20I"))
	}
	return disturbances
}

// lasts is during, for what a switch waits for and so must end soon.
func (d operatorDrawing) lasts(begin, end scenario.Action) steps {
	return steps{step(begin), d.wait("0I", "1I", "3I", "9I"), step(end)}
}

func (d operatorDrawing) killed(who scenario.Selector) steps {
	return d.lasts(process(scenario.VerbKill, who), process(scenario.VerbStart, who))
}

// settled is the phase after the last fault has ended and the last configuration was requested: the operator completes it, in the time that four switches take at
// most, and then all is as it is without an operator.
func settled() steps {
	return steps{
		wait("2I"),
		expect("600s", `conditions["EncryptionMigrationControllerProgressing"].status == "False"`),
		step(&scenario.Data{Op: scenario.DataVerify}),
		expect("1I", "data.lost == 0"),
		{Parallel: steps{
			expect("recovery + staleness", `kmsActive ? rollup.degraded.status == "False" && rollup.degraded.reason == "AsExpected" && rollup.available.status == "True" `+
				`: reports.size() == 0 && !rollup.degraded.exists && !rollup.available.exists`),
			expect("recovery + staleness", clusterOperatorWell),
		}},
		wait("recovery"),
		holds("4I", `!kmsActive || rollup.degraded.status == "False" && clusterOperator.degraded.status == "False"`),
	}
}
