package mutants

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/command"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

// starters are operators that start plugins wrongly: with an image that cannot start, or with other credentials.
func starters() []Mutant {
	const image, settings = "operator-plugin-image-cannot-start", "operator-vault-config"
	return []Mutant{
		{
			Name: "progresses-for-ever", Scenario: image, Caught: []string{"steps[3].expect"},
			Mistake: "an image that cannot be pulled is tried again and again, and logged: the conditions say that the operator is at work",
			Virtual: simulating(decisions.Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { withoutCondition(p, core.ConditionPreflight) })),
		},
		{
			Name: "plugin-cannot-start-unsaid", Scenario: image, Caught: []string{"steps[8].expect"},
			Mistake: "KMSPluginDegraded from reports alone: a plugin that never ran is in none, and the switch waits without a word",
			Virtual: simulating(decisions.Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { withoutCondition(p, core.ConditionPlugin) })),
		},
		{
			Name: "ends-the-old-plugin-first", Scenario: image, Caught: []string{"SWITCH-ORDER"},
			Mistake: "a container that is deleted and created: where the new image does not start the API server has no plugin",
			Virtual: setUp(live.TestHooks{PluginsEndFirst: true}),
		},
		{
			Name: "credentials-by-name", Scenario: "operator-credential-revoked", Caught: []string{"steps[7].expect"},
			Mistake: "a Secret is the same as long as its name is: plugins go on with what was revoked, until somebody restarts them",
			Virtual: simulating(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				o.Credentials, o.Wanted.KMS = nil, o.Wanted.KMS.WithoutContent()
				decisions.EachNode(o, func(n *core.Node) {
					for id, p := range n.Plugins {
						n.Plugins[id] = p.WithoutContent()
					}
				})
			})),
		},
		{
			Name: "credentials-looked-for-once", Scenario: "operator-credentials-missing", Caught: []string{"steps[17].expect"},
			Mistake: "what is missing is looked for when the configuration changes: credentials that a cloud provides later are never noticed",
			Virtual: simulating(lookingOnce),
		},
		{
			Name: "settings-by-reference-alone", Scenario: settings, Caught: []string{"steps[6].expect"},
			Mistake: "settings that are read when KMS is switched on: of another key in the object to which the configuration refers nobody hears",
			Virtual: simulating(func() decisions.Operator {
				var first core.Wanted
				return decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
					switch {
					case o.Wanted.Invalid != "":
					case o.Wanted.Type != config.KMS || first.Type != config.KMS:
						first = o.Wanted
					default:
						o.Wanted = first
					}
				})()
			}),
		},
		{
			Name: "settings-without-image-unsaid", Scenario: settings, Caught: []string{"steps[1].expect"},
			Mistake: "an operator that waits for the image and sets no condition: nobody learns that the image is missing",
			Virtual: simulating(decisions.Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { withoutCondition(p, core.ConditionConfig) })),
		},
		{
			Name: "failing-since-the-last-report", Scenario: "operator-stages-of-a-failure", Caught: []string{"steps[7].expect"},
			Mistake: "the age of a failure counted from the last report: it is seconds old for ever, and nobody is told when it needs somebody",
			Virtual: simulating(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				decisions.EachEntry(o, func(e *core.Entry) { e.Failing = time.Time{} })
			})),
		},
		{
			Name: "credentials-by-version", Scenario: "operator-credential-changes", Caught: []string{"steps[6].holds"},
			Mistake: "the resource version in the place of the content: the migration writes every Secret, so that each switch ends with plugins that are started anew",
			Virtual: configuredOperators(func(o *operator.Options) {
				o.Contents = func(version string, _ map[string][]byte) map[string][]byte {
					return map[string][]byte{"version": []byte(version)}
				}
			}),
		},
	}
}

// lookingOnce is an operator that goes on missing what was missing when it first saw a configuration.
func lookingOnce() decisions.Operator {
	seen := map[string][]string{}
	return decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
		hash := fmt.Sprint(o.Wanted.KMS.WithoutContent())
		if _, before := seen[hash]; !before {
			seen[hash] = o.Wanted.Missing
		}
		o.Wanted.Missing = seen[hash]
	})()
}

// simulating is operators that decide wrongly, and a cluster that serves pods by what they have made.
func simulating(wrong func() decisions.Operator) func() virtual.Options {
	return func() virtual.Options {
		s := wrong()
		o := configuredOperators(func(o *operator.Options) { o.Decide = s.Decide })()
		o.TestHooks = live.TestHooks{Serve: s.Serve}
		return o
	}
}

const operatorProgram = "encryption-operator"

type startingOperator = starting[command.Configure]

// operatorsBy is operators that are changed before they run, at each start anew.
func operatorsBy(change func(*startingOperator)) func() virtual.Options {
	return startedBy(operatorProgram, command.Main, change)
}

// configuredOperators is operators with other options.
func configuredOperators(change command.Configure) func() virtual.Options {
	return operatorsBy(func(o *startingOperator) { o.configure = append(o.configure, change) })
}

// withoutCondition has a plan say that all is as expected with a condition.
func withoutCondition(p *core.Plan, kind string) {
	if i := slices.IndexFunc(p.Conditions, func(c core.Condition) bool { return c.Type == kind }); i >= 0 {
		p.Conditions[i] = core.Condition{Type: kind, Reason: core.ReasonAsExpected}
	}
}
