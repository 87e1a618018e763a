package swarm

import "fmt"

// foreign is somebody else's condition on the operator CR, which comes and goes: the ClusterOperator follows it, and nothing else does.
func (d *drawing) foreign() []string {
	kind := d.keyword("NodeControllerDegraded", "InstallerControllerDegraded", "StaticPodsAvailable", "RevisionControllerProgressing", "Unrelated")
	status := d.keyword("True", "False", "Unknown")
	on, off := fmt.Sprintf("condition: {type: %s, status: %q, reason: Foreign, message: by somebody else, manager: node-controller}", kind, status),
		fmt.Sprintf("condition: {type: %s, manager: node-controller, delete: true}", kind)
	if d.rng.IntN(3) == 0 {
		return d.foreignBurst(on, off)
	}
	return d.during(on, off)
}
