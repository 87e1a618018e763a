package swarm

import "github.com/kmsharness/kmsharness/harness/scenario"

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
