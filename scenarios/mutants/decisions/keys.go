package decisions

import (
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// keys make keys at a wrong time, or wrong ones.
func keys() []Wrong {
	return []Wrong{
		{
			Name: "new-key-while-a-plugin-fails", Law: "ONE-AT-A-TIME", Scenario: "operator-key-waits-for-a-healthy-plugin", Caught: []string{"steps[6].holds"},
			Mistake: "no precondition: the key is changed while a plugin cannot decrypt, and the migration hangs half-way",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				top, _ := Newest(*o)
				if top.Migrated && top.KEK != "" {
					EachEntry(o, func(e *core.Entry) { e.Healthy, e.Checked, e.KEK = true, now, top.KEK })
				}
			}),
		},
		{
			Name: "no-preflight", Law: "PREFLIGHT", Scenario: "operator-preflight-fails", Caught: []string{"steps[4].expect"},
			Mistake: "the first to try a new configuration is the API server",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
				o.Preflight = core.Preflight{Hash: o.Wanted.Hash(), OK: true, At: now}
			}),
		},
		{
			Name: "invalid-is-identity", Law: "AS-WANTED", Scenario: "operator-invalid-configuration", Caught: []string{"steps[4].expect"},
			Mistake: "a type that is not known falls through to the default: a typing error decrypts the cluster's data",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				if o.Wanted.Invalid != "" {
					o.Wanted = core.Wanted{Wanted: config.Wanted{Type: config.Identity}}
				}
			}),
		},
		{
			Name: "rotation-makes-no-difference", Law: "NOTHING-LEFT", Scenario: "operator-kek-rotation", Caught: []string{"steps[4].expect"},
			Mistake: "the kekID in the reports is for people: after a rotation everything stays under the old KEK, which somebody will delete",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := Newest(*o)
				EachEntry(o, func(e *core.Entry) {
					if top.Migrated && top.KEK != "" && e.KEK != "" {
						e.KEK = top.KEK
					}
				})
			}),
		},
	}
}
