package core_test

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// A node that comes holds up whatever all must agree on, and nothing is done on it or taken away; one that is gone holds up nothing.
func TestNodesThatComeAndGo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*core.Observed)
		want   string
	}{
		"all are there": {func(*core.Observed) {}, "CreateKey 2 aescbc"},
		"one comes": {func(o *core.Observed) {
			o.Nodes["cp-3"] = core.Node{Unavailable: true, Since: now}
		}, ""},
		"one is gone that was not well": {func(o *core.Observed) {
			entry(o, "cp-2", func(e *core.Entry) { e.Healthy = false })
			delete(o.Nodes, "cp-2")
		}, "CreateKey 2 aescbc"},
		"one is there, and the report is its predecessor's": {func(o *core.Observed) {
			node(o, "cp-2", func(n *core.Node) { n.Since = now.Add(-30 * time.Second) })
		}, ""},
		"one is there, and has reported": {func(o *core.Observed) {
			node(o, "cp-2", func(n *core.Node) { n.Since = now.Add(-2 * time.Minute) })
		}, "CreateKey 2 aescbc"},
	} {
		o := atRest(t)
		o.Wanted = wants(config.AESCBC, config.Plugin{})
		test.change(&o)
		if got := plan(core.Decide(o, core.DefaultOptions(), now)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
