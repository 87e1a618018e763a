package mutants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecycleRevisions go by a wrong revision.
func lifecycleRevisions() []Mutant {
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
	return []Mutant{
		{
			Name: "old-revision-old-plugins", Caught: []string{"READABLE"},
			Mistake: "an API server that is rolled back gets the plugins of its time: what was written since has none",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Serve = func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
					c, _ := core.Serve(o, back)
					_, p := ofTheTime(o, back)
					return c, p
				}
				return s
			},
		},
		{
			Name: "old-revision-old-configuration", Caught: []string{"READABLE"},
			Mistake: "an API server that is rolled back gets the encryption configuration of its time: it cannot read what was written since",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Serve = func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
					_, p := core.Serve(o, back)
					c, _ := ofTheTime(o, back)
					return c, p
				}
				return s
			},
		},
		{
			Name: "oldest-wins", Caught: []string{"CONVERGES"},
			Mistake: "a list that is sorted the other way round: the first revision is in force for ever",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				if len(o.Configs) > 1 {
					o.Configs = byRevision(o.Configs)[:1]
				}
			}),
		},
		{
			Name: "revisions-as-text", Caught: []string{"CONVERGES"},
			Mistake: "revisions compared as the labels that they are: 9 is newer than 10, and nothing moves after the ninth",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				o.Configs = slices.DeleteFunc(slices.Clone(o.Configs), func(c revision.Config) bool {
					return c.Revision > 9 && slices.ContainsFunc(o.Configs, func(c revision.Config) bool { return c.Revision == 9 })
				})
			}),
		},
	}
}
