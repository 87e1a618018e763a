package mutants

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
)

// deciders are operators of the family Lifecycle that switch the encryption of a simulated cluster, too: what the model's laws say of them, the
// invariants and expectations of scenarios must say as well.
func deciders() []Mutant {
	return []Mutant{
		decider("writes-before-all-read", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("promotes-before-all-have-read", "operator-version-skew", "SWITCH-ORDER"),
		decider("converged-with-a-node-missing", "operator-lagging-node", "SWITCH-ORDER"),
		decider("removes-before-migration", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("never-migrates", "operator-initial-configuration", "steps[2].expect"),
		decider("teardown-order-reversed", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("one-plugin-per-pod", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("plugins-never-end", "operator-downgrade-after-migrating-away", "steps[6].expect"),
		decider("plugins-end-with-the-type", "operator-downgrade-after-migrating-away", "SWITCH-ORDER"),
		decider("missing-credentials-block", "operator-credentials-missing", "steps[11].expect"),
		decider("no-preflight", "operator-preflight-fails", "steps[4].expect"),
		decider("invalid-is-identity", "operator-invalid-configuration", "steps[4].expect"),
		decider("rotation-makes-no-difference", "operator-kek-rotation", "steps[4].expect"),
		decider("prunes-too-early", "operator-prunes", "NO-DATA-LOSS"),
		decider("counts-a-removed-node", "operator-node-removed-while-it-lags", "steps[7].expect"),
		decider("newcomer-gets-the-first-revision", "operator-node-added-during-a-switch", "steps[7].holds"),
		decider("newcomer-gets-no-plugins", "operator-node-added-during-a-switch", "steps[13].expect"),
		decider("oldest-wins", "operator-initial-configuration", "steps[2].expect"),
	}
}

// decider is one of them, in a scenario that brings it out.
func decider(name, scenario string, caught ...string) Mutant {
	m := Mutant{Name: name + "-simulated", Scenario: scenario, Caught: caught}
	all := lifecycles()
	if i := slices.IndexFunc(all, func(l Mutant) bool { return l.Name == name }); i >= 0 {
		m.Mistake = all[i].Mistake
		m.Subject = func() sim.Options {
			wrong := all[i].Wrong()
			return sim.Options{Cores: sim.Cores{Operate: wrong.Decide, Serve: wrong.Serve}}
		}
	}
	return m
}
