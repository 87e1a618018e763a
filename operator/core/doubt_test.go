package core_test

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// While what the nodes agreed on is taken back the operator is not at rest, and does not say so: whoever waits for its rest would go on
// before everything is written anew.
func TestDoubtIsNoRest(t *testing.T) {
	long := revision.Convergence{KEK: "kek-1", Since: now.Add(-time.Hour)}
	silent := func(o *core.Observed) {
		entry(o, "cp-1", func(e *core.Entry) { e.Checked = now.Add(-time.Hour) })
	}
	for name, c := range map[string]struct {
		change func(*core.Observed)
		want   string
	}{
		"nobody doubts": {func(*core.Observed) {}, ""},
		"a node falls silent in a migration": {func(o *core.Observed) {
			o.Keys[0].Migrated, o.Keys[0].KEK, o.Keys[0].Converged = false, "", long
			silent(o)
		}, core.StageMigrating},
		"a node falls silent before everything is encrypted anew": {func(o *core.Observed) {
			o.Keys[0].KEK, o.Keys[0].Converged = "", long
			silent(o)
		}, core.StageReencrypting},
		"a node has another kekID": {func(o *core.Observed) { entry(o, "cp-2", func(e *core.Entry) { e.KEK = "kek-2" }) }, core.StageReencrypting},
	} {
		o := atRest(t)
		c.change(&o)
		got := ""
		for _, said := range core.Decide(o, core.DefaultOptions(), now).Conditions {
			if said.Type == core.ConditionProgressing && said.Status {
				got = said.Reason
			}
		}
		if got != c.want {
			t.Errorf("%s: at stage %q, expected %q", name, got, c.want)
		}
	}
}
