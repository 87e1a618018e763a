package swarm

import "fmt"

// A race is something that happens within the few milliseconds in which an aggregator is between two of its own steps. Faults that are drawn
// at any time of an hour never get there: past mistakes were found by none of thousands of seeds.

// foreignRace takes somebody else's condition away when a report has just come that changes the rollups: the aggregator has read the
// one, and not yet written the other.
func (d *drawing) foreignRace() []string {
	kind, status, node, keyID := "NodeControllerDegraded", "True", d.node(), d.keyIDs[0] // the write key: Available changes with it
	if d.rng.IntN(3) == 0 {
		kind, status = "StaticPodsAvailable", "False"
	}
	foreign := fmt.Sprintf("condition: {type: %s, status: %q, reason: Foreign, message: by somebody else, manager: node-controller}", kind, status)
	gone := fmt.Sprintf("condition: {type: %s, manager: node-controller, delete: true}", kind)
	plugin := fmt.Sprintf("plugin: {node: %s, keyID: %s}", node, keyID)
	seen := func(what, within string) string {
		if d.plan.Streams { // another lane may have the aggregator's path broken
			return "wait: " + within
		}
		return fmt.Sprintf("expect: 'report[%q][%s].status %s \"healthy\"'\n          within: %s", node, keyID, what, within)
	}
	first, second := foreign, gone
	if d.rng.IntN(3) == 0 { // or it comes
		first, second = gone, foreign
	}
	return []string{first, d.wait("0I", "1I"), "inject: {" + plugin + ", method: Status, fault: healthz, text: not well}", seen("!=", "detection"), d.moment(8), second,
		d.wait("0I", "1I", "3I"), "release: {" + plugin + "}", seen("==", "recovery"), d.moment(8), first, d.wait("0I"), gone}
}

// removalRace changes the list of conditions while an aggregator takes the rollups out of it because KMS is no longer used: the API server
// refuses the removal, which has to be tried again, and nobody is told that it was done. For that the other condition has to
// stand before the rollups, so KMS is off for a while when it comes.
func (d *drawing) removalRace() []string {
	foreign := "condition: {type: Unrelated, status: \"True\", reason: Foreign, message: by somebody else, manager: node-controller}"
	gone := "condition: {type: Unrelated, manager: node-controller, delete: true}"
	off := "parallel:\n          - encryption: {type: identity}\n          - repeat:\n              times: 1\n              steps:\n" +
		"              - expect: '!kmsActive'\n                within: 1m\n              - " + d.moment(8) + "\n              - " + gone
	return []string{"encryption: {type: identity}", d.wait("0I"), foreign, "encryption: {type: KMS}", d.wait("1I", "3I"), off, d.wait("1I", "3I"), "encryption: {type: KMS}"}
}

// moment is a wait within what an aggregator needs for a step.
func (d *drawing) moment(most int) string { return fmt.Sprintf("wait: %dms", 1+d.rng.IntN(most)) }

// glitch breaks all connections on a way, and lets new ones be made at once: requests fail, and watches have to be begun anew.
func glitch(where string) []string {
	return []string{"link: {" + where + ", mode: reset}", "link: {" + where + ", mode: restore}"}
}

// foreignBurst is a condition that somebody else puts on and takes off again and again, faster than an aggregator follows.
func (d *drawing) foreignBurst(on, off string) []string {
	return []string{fmt.Sprintf("repeat: {times: %d, steps: [{%s}, {%s}, {%s}, {%s}]}", d.one(2, 3, 5), on, d.moment(30), off, d.moment(30))}
}
