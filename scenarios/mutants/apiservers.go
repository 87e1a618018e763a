package mutants

import (
	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/history"
)

// What only a cluster with several API servers that encrypt can have wrong. Each mistake was made by somebody who had kube-apiserver in mind.

// aggregatedReporters are reporters of further API servers that take something of kube-apiserver for theirs.
func aggregatedReporters() []Mutant {
	return []Mutant{
		{
			Name: "operator-of-the-default", Scenario: "apiservers-oauth-killed", Caught: []string{"TRUTHFUL-PROBE", "before.expect"},
			Mistake: "the sidecar of oauth-apiserver without --operator: its reports stand in the CR of kube-apiserver, in the place of that one's",
			Subject: configured(history.RoleReporter, history.OAuthAPIServer, history.KubeAPIServer),
		},
		{
			Name: "sockets-of-the-static-pod", Scenario: "apiservers-plugin-hangs", Caught: []string{"TRUTHFUL-PROBE", "steps[1].expect"},
			Mistake: "the host's folder of sockets mounted in place of the pod's own: all API servers of a node report the plugins of one",
			Subject: hook(sim.TestHooks{ForeignSockets: true}),
		},
	}
}

// aggregatedAggregators are aggregators of further API servers that read the wrong reports.
func aggregatedAggregators() []Mutant {
	return []Mutant{{
		Name: "rolls-up-another-operator", Scenario: "apiservers-plugin-hangs", Caught: []string{"ROLLUP-TRUTH", "before.expect"},
		Mistake: "a controller copied from one operator to the other with the name of its CR: what fails at openshift-apiserver nobody rolls up",
		Subject: configured(history.RoleAggregator, history.OpenShiftAPIServer, history.OAuthAPIServer),
	}}
}

// aggregatedPlugins are plugins of further API servers with kube-apiserver's key.
func aggregatedPlugins() []Mutant {
	return []Mutant{{
		Name: "one-key-for-all", Scenario: "apiservers-encrypted", Caught: []string{"steps[3].expect"},
		Mistake: "one configuration for the plugins of all API servers: whoever may decrypt with the key of one reads the data of all",
		Subject: hook(sim.TestHooks{Key: func(_, good string) string {
			if of := apiservers.OfKey(good); of != "" {
				return good[len(of)+1:]
			}
			return good
		}}),
	}}
}

// aggregatedSwitches are operators that forget an API server.
func aggregatedSwitches() []Mutant {
	return []Mutant{{
		Name: "aggregated-data-not-migrated", Scenario: "apiservers-encryption-switched", Caught: []string{"NO-DATA-LOSS", "steps[2].expect"},
		Mistake: "a migration of secrets and configmaps: what an aggregated API server keeps stays under the old key, which is then removed",
		Subject: hook(sim.TestHooks{Unmigrated: func(apiServer string) bool { return apiServer == history.OAuthAPIServer }}),
	}}
}

// configured is a subject in which those of a role at one API server are told the operator of another.
func configured(role, at, other string) func() sim.Options {
	return hook(sim.TestHooks{Operator: func(r, apiServer string) string {
		if r == role && apiServer == at {
			return other
		}
		return apiServer
	}})
}
