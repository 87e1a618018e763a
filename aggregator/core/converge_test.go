package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

func TestConverge(t *testing.T) {
	now := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	entry := func(node, key, remote string, age time.Duration) contract.TypedReport {
		return contract.TypedReport{NodeName: node, KeyID: key, RemoteKeyID: remote, Status: "Healthy", LastCheckedTime: now.Add(-age).Format(time.RFC3339)}
	}
	since := func(age time.Duration) []core.Condition {
		return []core.Condition{{Type: contract.ConditionConvergenceProgressing, Status: core.True, LastTransitionTime: now.Add(-age)}}
	}
	for name, c := range map[string]struct {
		entries  []contract.TypedReport
		standing []core.Condition
		inactive bool
		want     string // Progressing, Degraded, removed entries
	}{
		"nothing":                    {want: "False False 0"},
		"agree":                      {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "k", 0)}, want: "False False 0"},
		"differ":                     {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 0)}, want: "True False 0"},
		"of two keyIDs":              {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("a", "2", "l", 0)}, want: "False False 0"},
		"no remote key id":           {entries: []contract.TypedReport{entry("a", "1", "", 0)}, want: "True False 0"},
		"for less than an hour":      {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 0)}, standing: since(time.Hour - time.Second), want: "True False 0"},
		"for an hour":                {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 0)}, standing: since(time.Hour), want: "True True 0"},
		"one is nearly old":          {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 599*time.Second)}, want: "True False 0"},
		"one is old":                 {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 10*time.Minute)}, want: "False False 1"},
		"old ones, and KMS is off":   {entries: []contract.TypedReport{entry("b", "1", "l", time.Hour)}, inactive: true, want: "False False 0"},
		"they differ, and it is off": {entries: []contract.TypedReport{entry("a", "1", "k", 0), entry("b", "1", "l", 0)}, standing: since(time.Hour), inactive: true, want: "False False 0"},
	} {
		in := core.Input{Now: now, Interval: 30 * time.Second, KMSActive: !c.inactive, Observed: core.Observed{Conditions: c.standing, Reports: map[string]core.Report{}}}
		for _, e := range c.entries {
			r := in.Observed.Reports[e.NodeName]
			r.Typed = append(r.Typed, e)
			in.Observed.Reports[e.NodeName] = r
		}
		d := core.Converge(in, core.Memory{})
		if got := fmt.Sprint(d.Rollups[0].Status, " ", d.Rollups[1].Status, " ", len(d.Remove.Entries)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if d.NextWake.After(now.Add(time.Minute)) {
			t.Errorf("%s: looks again at %s", name, d.NextWake)
		}
	}
}
