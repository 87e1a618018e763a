package invariants

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestLongRound: a silence of a reporter names the mistake where the journals show it. Calls of an API server beside those of a good reporter show none.
func TestLongRound(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const r = time.Second
	type call struct {
		key         string
		began, took time.Duration
	}
	for name, c := range map[string]struct {
		calls []call
		want  string
	}{
		"in turn":                              {[]call{{"1", r, r}, {"2", 2 * r, r}, {"3", 3 * r, r / 100}}, "in turn and not concurrently, plugin 2 when the call of plugin 1 has ended"},
		"no deadline":                          {[]call{{"1", r, 5 * r}, {"2", r, r / 100}}, "Status call of plugin 1 went on for 5s"},
		"concurrently":                         {[]call{{"1", r, r}, {"2", r, r}, {"1", 4 * r, r}, {"2", 4 * r, r}}, ""},
		"an API server's call after a round":   {[]call{{"1", r, r}, {"2", r, r / 100}, {"2", 2 * r, r / 100}}, ""},
		"a round after an API server's call":   {[]call{{"1", r, r}, {"1", 2 * r, r / 100}, {"2", 2 * r, r / 100}}, ""},
		"an API server with a longer patience": {[]call{{"1", r, 5 * r}, {"1", 2 * r, r}, {"2", 2 * r, r}}, ""},
	} {
		v := facts.New(nil)
		v.Run.Timing = contract.DefaultTiming()
		v.ProbeTimeout = r
		for _, x := range c.calls {
			i := slices.IndexFunc(v.Plugins.All, func(p *facts.Plugin) bool { return p.KeyID == x.key })
			if i < 0 {
				i, v.Plugins.All = len(v.Plugins.All), append(v.Plugins.All, &facts.Plugin{PluginID: facts.PluginID{Node: "cp-1", KeyID: x.key}})
			}
			began := start.Add(x.began)
			call := &history.Call{KeyID: x.key, Began: began, Ended: began.Add(x.took)}
			v.Plugins.All[i].Probes = append(v.Plugins.All[i].Probes, facts.Probe{Call: call, Span: span.New(call.Began, call.Ended)})
		}
		got := longRound(v, "cp-1", span.New(start, start.Add(10*r)))
		if got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		if other := longRound(v, "cp-2", span.New(start, start.Add(10*r))); other != "" {
			t.Errorf("%s: of another node: %q", name, other)
		}
	}
}
