package mutants

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// switches is operators that switch the encryption with a mistake.
func switches() []Mutant {
	const roundTrip = "encryption-type-round-trip"
	return []Mutant{
		{
			Name: "migration-skips-an-object", Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "an error in the middle of a page that is logged and not counted: one object is never written anew, and its key is removed",
			Virtual: setUp(live.TestHooks{Skip: func(_, name string) bool { return name == "data-1" }}),
		},
		{
			Name: "migrates-one-namespace", Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration with the permissions of one namespace: what the others have stays under the old key",
			Virtual: setUp(live.TestHooks{Skip: func(_, name string) bool { return strings.HasPrefix(name, "encryption-key-") }}),
		},
		{
			Name: "key-removed-before-the-migration", Scenario: roundTrip, Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "the old key pruned as soon as the new one writes: nobody can read any more what nobody has written since",
			Virtual: stages(func(good []encryption.Stage) []encryption.Stage {
				for i := range good {
					good[i].Migrate = false
				}
				return good
			}),
		},
		{
			Name: "read-key-not-kept", Scenario: "encryption-aesgcm", Caught: []string{"SWITCH-ORDER"},
			Mistake: "a configuration made of the newest key alone: the old one goes in the same step in which the new one begins to write",
			Virtual: stages(func(good []encryption.Stage) []encryption.Stage {
				for i := range good {
					good[i].Providers, good[i].Migrate = good[len(good)-1].Providers, false // nobody can read what was to be migrated
				}
				return good
			}),
		},
		{
			Name: "previous-read-key-pruned", Scenario: "etcd-restored", Caught: []string{"NO-DATA-LOSS", "steps[7].expect"},
			Mistake: "the old key pruned as soon as everything is written anew: a snapshot of etcd of before the switch cannot be read any more",
			Virtual: stages(func(good []encryption.Stage) []encryption.Stage {
				end := slices.Clone(good[len(good)-1:])
				end[0].Providers, end[0].Migrate = end[0].Providers[:1:1], false
				return append(slices.Clone(good), end...)
			}),
		},
		{
			Name: "writes-before-all-can-read", Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "the new key first at once: an API server that has reloaded writes what the others answer with an error",
			Virtual: stages(func(good []encryption.Stage) []encryption.Stage {
				return slices.DeleteFunc(good, func(s encryption.Stage) bool {
					return len(good) > 2 && s.Providers.Writer() == good[0].Providers.Writer()
				})
			}),
		},
		{
			Name: "migrates-too-early", Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "a migration that begins when the new key can be read: every object is written anew, under the old key",
			Virtual: stages(func(good []encryption.Stage) []encryption.Stage {
				for i := range good {
					good[i].Migrate = i == 0
				}
				return good
			}),
		},
		{
			Name: "settles-for-one-api-server", Scenario: "encryption-switched-in-the-middle", Caught: []string{"SWITCH-ORDER"},
			Mistake: "the next revision as soon as one API server runs the last: behind a load balancer the one that was asked is rarely the slowest",
			Virtual: setUp(live.TestHooks{AwaitOne: true}),
		},
		{
			Name: "plugins-end-first", Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "plugins torn down when the administrator changes the type: what has to be written anew cannot be read",
			Virtual: setUp(live.TestHooks{PluginsEndFirst: true}),
		},
		{
			Name: "reporters-end-last", Scenario: "kms-disabled", Caught: []string{"SWITCH-ORDER"},
			Mistake: "the order of teardown reversed: reporters see their plugins end, and report a failure that is none",
			Virtual: setUp(live.TestHooks{ReportersEndLast: true}),
		},
	}
}

func stages(change func(good []encryption.Stage) []encryption.Stage) func() virtual.Options {
	return setUp(live.TestHooks{Stages: change})
}

// setUp is a cluster for which the harness does something wrong.
func setUp(h live.TestHooks) func() virtual.Options {
	return func() virtual.Options { return virtual.Options{TestHooks: h} }
}
