package decisions

import (
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// revisions go by a wrong revision.
func revisions() []Wrong {
	// ofTheTime is the revision that was the newest when the pod's own was.
	ofTheTime := func(o core.Observed, back int) (c revision.Config, p revision.PluginConfig) {
		c, p = core.Serve(o, back)
		for _, one := range byRevision(o.Configs) {
			if one.Revision <= c.Revision-back {
				c = one
			}
		}
		for _, one := range o.PluginConfigs {
			if one.Revision == p.Revision-back {
				p = one
			}
		}
		return c, p
	}
	return []Wrong{
		{
			Name: "old-revision-old-plugins", Law: "READABLE", Scenario: "operator-replicaset-rollback", Caught: []string{"SWITCH-ORDER"},
			Mistake: "an API server that is rolled back gets the plugins of its time: what was written since has none",
			Operator: serving(func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
				c, _ := core.Serve(o, back)
				_, p := ofTheTime(o, back)
				return c, p
			}),
		},
		{
			Name: "old-revision-old-configuration", Law: "READABLE", Scenario: "operator-rollback-during-kms-to-kms", Caught: []string{"steps[5]"},
			Mistake: "an API server that is rolled back gets the encryption configuration of its time: it cannot read what was written since",
			Operator: serving(func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
				_, p := core.Serve(o, back)
				c, _ := ofTheTime(o, back)
				return c, p
			}),
		},
		{
			Name: "oldest-wins", Law: "CONVERGES", Scenario: "operator-initial-configuration", Caught: []string{"steps[2].expect"},
			Mistake: "a list that is sorted the other way round: the first revision is in force for ever",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				if len(o.Configs) > 1 {
					o.Configs = byRevision(o.Configs)[:1]
				}
			}),
		},
	}
}
