package swarm

import (
	"fmt"
	"slices"
)

// operatorDrawing draws a seed with an operator.
type operatorDrawing struct{ d *drawing }

// operated is the scenario file of a seed in which an operator switches the encryption, again and again and often before it is done, while it
// and what it needs come and go.
func (o operatorDrawing) operated() []byte {
	o.d.head = "apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata:\n  name: " + Name(o.d.seed) + "\n" +
		"  title: \"Whatever comes between an operator and its switches, no object is lost, and the last requested configuration takes effect.\"\n  area: lifecycle\nspec:\n" +
		fmt.Sprintf("  contract: %s\n  topology: {lifecycle: operator, controlPlanes: %d, aggregators: %d%s}\n", o.d.contract, len(o.d.nodes), o.d.aggregators, o.d.plan.way())
	return o.d.fileTo(append([][]string{o.desiredStates()}, o.beside()...), settled)
}

// desiredStates are what the cluster's APIServer object asks for, one after another.
func (o operatorDrawing) desiredStates() []string {
	lane := []string{fmt.Sprintf("data: {op: write, count: %d, size: 256}", o.d.one(1, 6, 20))}
	for i := range o.d.one(1, 2, 3, 4) {
		waits := []string{"0I", "1I", "3I", "10I", "20I", "40I"}
		if i == 0 { // it is KMS, for a while: without a plugin there is little to judge
			waits = waits[2:]
		}
		lane = append(lane, o.desired(i == 0), o.d.wait(waits...))
	}
	return lane
}

func (o operatorDrawing) desired(kms bool) string {
	all := []string{"type: KMS, vault: {vaultKeyPath: transit/keys/one}", "type: KMS, vault: {vaultKeyPath: transit/keys/two}"}
	if !kms {
		all = append(all, "type: identity", "type: aescbc", "type: aesgcm")
	}
	what := o.d.keyword(all...)
	if o.d.rng.IntN(5) == 0 { // one API server gets it later than the others
		what += fmt.Sprintf(", lag: {%s: %s}", o.d.node(), o.d.keyword("1s", "8s"))
	}
	return "apiserver: {" + what + "}"
}

// beside is what goes wrong meanwhile, each in a lane of its own.
func (o operatorDrawing) beside() (disturbances [][]string) {
	// One node at most: the others serve meanwhile. What goes, goes as a process, as a pod or with the whole node, always the same.
	gone := "node: " + o.d.node()
	gone = "{" + o.d.keyword("role: apiserver, "+gone, "role: pod, "+gone, "role: node, "+gone) + "}"
	all := []func() []string{
		func() []string {
			if o.d.rng.IntN(2) == 0 {
				return []string{"restart: {role: operator, with: kill}"}
			}
			return o.lasts("kill: {role: operator}", "start: {role: operator}")
		},
		func() []string {
			return o.lasts("kill: "+gone, "start: "+gone)
		},
		o.d.balancer,
		func() []string {
			return o.lasts("restart: {role: operator, release: older}", "restart: {role: operator, release: newer}")
		},
		func() []string { return []string{"rotate: {}"} },
		func() []string { return o.lasts("kms: {op: cut}", "kms: {op: restore}") },
		o.d.aggregator,
		func() []string { return []string{fmt.Sprintf("data: {op: write, count: %d}", o.d.one(1, 3, 6))} },
	}
	if len(o.d.nodes) < 3 {
		all = slices.Delete(all, 1, 3)
	} else if o.d.rng.IntN(2) == 0 { // a node comes and goes, which nothing else is about, and all the others are there then
		n := o.d.setApart()
		all[1] = func() []string { return o.d.nodeChange(n) }
	}
	o.d.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, episode := range all[:o.d.one(1, 2, 3)] {
		var lane []string
		for range o.d.one(1, 2, 3) {
			lane = append(append(lane, o.d.wait("0I", "2I", "7I", "20I")), episode()...)
		}
		disturbances = append(disturbances, lane)
	}
	return disturbances
}

// lasts is during, for what a switch waits for and so must end soon.
func (o operatorDrawing) lasts(begin, end string) []string {
	return []string{begin, o.d.wait("0I", "1I", "3I", "9I"), end}
}

// settled is the phase after the last fault has ended and the last configuration was requested: the operator completes it, in the time that four switches take at
// most, and then all is as it is without an operator.
const settled = `  - wait: 2I
  - expect: conditions["EncryptionMigrationControllerProgressing"].status == "False"
    within: 600s
  - data: {op: verify}
  - expect: data.lost == 0
    within: 1I
  - parallel:
    - expect: >-
        kmsActive ? rollup.degraded.status == "False" && rollup.degraded.reason == "AsExpected" && rollup.available.status == "True"
        : reports.size() == 0 && !rollup.degraded.exists && !rollup.available.exists
      within: recovery + staleness
    - expect: '!kmsActive || clusterOperator.degraded.status == "False" && clusterOperator.available.status == "True"'
      within: recovery + staleness
  - wait: recovery
  - holds: '!kmsActive || rollup.degraded.status == "False" && clusterOperator.degraded.status == "False"'
    for: 4I
`
