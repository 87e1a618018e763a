package swarm

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A race is something that happens within the few milliseconds in which an aggregator is between two of its own steps. Faults that are drawn
// at any time of an hour never get there: past mistakes were found by none of thousands of seeds.

// foreignRace takes somebody else's condition away when a report has just come that changes the rollups: the aggregator has read the
// one, and not yet written the other.
func (d *drawing) foreignRace() steps {
	kind, status, plugin := "NodeControllerDegraded", "True", scenario.Selector{Node: d.node(), KeyID: d.keyIDs[0]} // the write key: Available changes with it
	if d.rng.IntN(3) == 0 {
		kind, status = "StaticPodsAvailable", "False"
	}
	on, off := foreignCondition(kind, status)
	seen := func(what, within string) scenario.Step {
		if d.plan.Streams { // another row may have the aggregator's path broken
			return wait(within)
		}
		return expect(within, fmt.Sprintf(`report[%q][%q].status %s "healthy"`, plugin.Node, plugin.KeyID, what))
	}
	first, second := on, off
	if d.rng.IntN(3) == 0 { // or it comes
		first, second = off, on
	}
	fault := notWell()
	fault.Plugin, fault.Method = plugin, "Status"
	return steps{step(first), d.wait("0I", "1I"), step(&fault), seen("!=", "detection"), d.moment(8), step(second),
		d.wait("0I", "1I", "3I"), step(&scenario.Release{Plugin: plugin}), seen("==", "recovery"), d.moment(8), step(first), d.wait("0I"), step(off)}
}

// removalRace changes the list of conditions while an aggregator takes the rollups out of it because KMS is no longer used: the API server
// refuses the removal, which has to be tried again, and nobody is told that it was done. For that the other condition has to
// stand before the rollups, so KMS is off for a while when it comes.
func (d *drawing) removalRace() steps {
	foreign, gone := foreignCondition("Unrelated", "True")
	identity, kms := step(&scenario.Encryption{Type: scenario.TypeIdentity}), step(&scenario.Encryption{Type: scenario.TypeKMS})
	off := scenario.Step{Parallel: steps{identity, repeat(1, expect("1m", "!kmsActive"), d.moment(8), step(gone))}}
	return steps{identity, d.wait("0I"), step(foreign), kms, d.wait("1I", "3I"), off, d.wait("1I", "3I"), kms}
}

// moment is a wait within what an aggregator needs for a step.
func (d *drawing) moment(most int) scenario.Step {
	return wait(fmt.Sprintf("%dms", 1+d.rng.IntN(most)))
}

// foreign is somebody else's condition on the operator CR, which comes and goes: the ClusterOperator follows it, and nothing else does.
func (d *drawing) foreign() steps {
	on, off := foreignCondition(pick(d.rng, "NodeControllerDegraded", "InstallerControllerDegraded", "StaticPodsAvailable", "RevisionControllerProgressing", "Unrelated"),
		pick(d.rng, "True", "False", "Unknown"))
	if d.rng.IntN(3) == 0 { // again and again, faster than an aggregator follows
		return steps{repeat(pick(d.rng, 2, 3, 5), step(on), d.moment(30), step(off), d.moment(30))}
	}
	return d.during(on, off)
}

// foreignCondition puts the condition on, and takes it off.
func foreignCondition(kind, status string) (on, off scenario.Action) {
	const manager = "node-controller"
	return &scenario.Condition{Type: kind, Status: status, Reason: "Foreign", Message: "by somebody else", Manager: manager},
		&scenario.Condition{Type: kind, Manager: manager, Delete: true}
}
