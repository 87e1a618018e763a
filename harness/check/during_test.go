package check

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

func TestFaultKind(t *testing.T) {
	for _, c := range []struct {
		verb, target string
		params       map[string]any
		want         string
	}{
		{"inject", "plugin cp-1/1", map[string]any{"fault": "hang", "method": "Status"}, "plugin hang"},
		{"release", "plugin cp-1/*", nil, ""},
		{"kill", "process reporter/cp-2", nil, "reporter kill"},
		{"start", "process reporter/cp-2", nil, ""},
		{"restart", "process etcd", nil, "etcd restart"},
		{"restart", "process plugin/cp-1/1", map[string]any{"with": "kill"}, "plugin crash"},
		{"link", "link reporter to apiserver cp-1", map[string]any{"mode": "slow", "delay": "50ms"}, "link reporter-apiserver slow"},
		{"link", "link reporter to apiserver cp-1", map[string]any{"mode": "restore"}, ""},
		{"kms", "", map[string]any{"op": "cut", "node": "cp-1"}, "kms cut"},
		{"kms", "", map[string]any{"op": "enable"}, ""},
		{"rotate", "", map[string]any{"lag": "0s"}, "rotate"},
		{"node", "", map[string]any{"replace": "cp-1", "with": "cp-4"}, "node replace"},
		{"encryption", "", map[string]any{"type": "identity"}, "encryption identity"},
		{"condition", "", map[string]any{"type": "X", "status": "True"}, "foreign condition"},
		{"condition", "", map[string]any{"type": "X", "delete": true}, ""},
		{"data", "", map[string]any{"op": "write"}, ""},
	} {
		if got := facts.FaultKind(c.verb, c.target, c.params); got != c.want {
			t.Errorf("%s %s %v is %q, expected %q", c.verb, c.target, c.params, got, c.want)
		}
	}
}

// A fault is in force from its beginning to its end, and for a while after.
func TestExposure(t *testing.T) {
	begin := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var actions facts.Actions
	act := func(s float64, verb, target string, params map[string]any) {
		actions.All = append(actions.All, facts.Action{Action: &history.Action{Verb: verb, Target: target, Params: params}, Span: span.New(at(s), at(s)), Done: true})
	}
	act(10, "inject", "plugin cp-1/*", map[string]any{"fault": "hang"})
	act(12, "kill", "process reporter/cp-1", nil)
	act(14, "kill", "process reporter/cp-2", nil)
	act(20, "release", "plugin cp-1/*", nil)
	act(30, "start", "process reporter/cp-1", nil)
	act(40, "rotate", "", nil)
	act(100, "link", "link aggregator to load-balancer", map[string]any{"mode": "cut"}) // never ended but by healing
	windows := actions.FaultWindows(5*time.Second, at(500))
	for _, c := range []struct {
		from, to float64
		want     []string
	}{
		{9, 9.9, nil},
		{10, 10, []string{"plugin hang"}},
		{13, 13, []string{"plugin hang", "reporter kill"}},
		{24.9, 24.9, []string{"plugin hang", "reporter kill"}},
		{26, 26, []string{"reporter kill"}},
		{36, 36, []string{"reporter kill"}}, // cp-2's goes on
		{1, 41, []string{"plugin hang", "reporter kill", "rotate"}},
		{504, 504, []string{"link aggregator-load-balancer cut", "reporter kill"}},
		{506, 507, nil},
	} {
		got := countDuring(windows, []span.Span{span.New(at(c.from), at(c.to))})
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, c.want) {
			t.Errorf("%v to %v: %v, expected %v", c.from, c.to, names, c.want)
		}
		for kind, n := range got {
			if n != 1 {
				t.Errorf("%v to %v: %s counts %d times, expected once", c.from, c.to, kind, n)
			}
		}
	}
}

// A verdict says under which faults each invariant was judged.
func TestDuring(t *testing.T) {
	for _, i := range Run(faulty(nil, "hang")).Invariants {
		if i.ID == "FALSE-HEALTHY" && (i.During["plugin hang"] == 0 || i.During["plugin hang"] > i.Judged) {
			t.Errorf("%s was judged %d times, %v during", i.ID, i.Judged, i.During)
		}
	}
	for _, i := range Run(faulty(nil, "")).Invariants {
		if len(i.During) > 0 && i.Judged == 0 {
			t.Errorf("%s was not judged, and during %v", i.ID, i.During)
		}
	}
}
