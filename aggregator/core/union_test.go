package core

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
)

func TestUnion(t *testing.T) {
	a := func(kind, status, reason string) Condition {
		return Condition{Type: kind, Status: status, Reason: reason, Message: "m-" + kind}
	}
	for name, c := range map[string]struct {
		sources []Condition
		kind    string
		want    string
		message string
	}{
		"nothing":              {nil, "Degraded", "False/AsExpected", "All is well"},
		"nothing available":    {nil, "Available", "True/AsExpected", "All is well"},
		"any true degrades":    {[]Condition{a("XDegraded", True, "R"), a("YDegraded", Unknown, "S")}, "Degraded", "True/X_R", "XDegraded: m-XDegraded"},
		"two are joined":       {[]Condition{a("YDegraded", True, "S"), a("XDegraded", True, "R")}, "Degraded", "True/X_R::Y_S", "XDegraded: m-XDegraded\nYDegraded: m-YDegraded"},
		"unknown beats good":   {[]Condition{a("XDegraded", Unknown, "R"), a("YDegraded", False, "S")}, "Degraded", "Unknown/X_R", "XDegraded: m-XDegraded"},
		"any false avails not": {[]Condition{a("XAvailable", False, "R"), a("YAvailable", Unknown, "S")}, "Available", "False/X_R", "XAvailable: m-XAvailable"},
		"all good":             {[]Condition{a("XAvailable", True, "R"), a("YAvailable", True, "S")}, "Available", "True/AsExpected", "XAvailable: m-XAvailable\nYAvailable: m-YAvailable"},
		"odd status":           {[]Condition{a("XProgressing", "Perhaps", "R")}, "Progressing", "Unknown/X_R", "XProgressing: m-XProgressing"},
		"no report by suffix":  {[]Condition{a(contract.ConditionType("evilDegraded"), True, "R")}, "Degraded", "False/AsExpected", "All is well"},
	} {
		united, _ := union(c.sources, contract.Union{}, noon())
		got, _ := find(united, c.kind)
		if got.Status+"/"+got.Reason != c.want || got.Message != c.message {
			t.Errorf("%s: got %s/%s %q, want %s %q", name, got.Status, got.Reason, got.Message, c.want, c.message)
		}
	}
}

func TestUnionPrefixesEveryLineAndIsBounded(t *testing.T) {
	long := Condition{Type: "XDegraded", Status: True, Reason: strings.Repeat("r", 5000), Message: strings.Repeat("word \x00\n", 5000)}
	united, _ := union([]Condition{long}, contract.Union{}, noon())
	got, _ := find(united, "Degraded")
	if n := utf8.RuneCountInString(got.Message); n > contract.MaxRollupMessageChars || !strings.HasSuffix(got.Message, "more") {
		t.Errorf("message has %d characters and ends %q", n, got.Message[len(got.Message)-20:])
	}
	if n := utf8.RuneCountInString(got.Reason); n > maxReasonChars {
		t.Errorf("reason has %d characters", n)
	}
	for _, l := range strings.Split(got.Message, "\n") {
		if !strings.HasPrefix(l, "XDegraded: ") && !strings.HasPrefix(l, "and ") {
			t.Errorf("line %q does not name its source", l)
		}
	}
}

func TestUnionWithInertia(t *testing.T) {
	// a is a condition that has had its status for so long.
	a := func(kind, status string, age time.Duration) Condition {
		return Condition{Type: kind, Status: status, Reason: "R", Message: "m-" + kind, LastTransitionTime: noon().Add(-age)}
	}
	const ago = time.Minute
	twoMinutes := contract.Inertia{All: 2 * time.Minute, Types: map[string]time.Duration{"SlowDegraded": 10 * time.Minute, "FastDegraded": 0}}
	for name, c := range map[string]struct {
		sources []Condition
		kind    string
		want    string
		lines   string
		expires time.Duration // after noon; 0: never
	}{
		"young":                  {[]Condition{a("XDegraded", True, ago)}, "Degraded", "False/AsExpected", "XDegraded", ago + instant},
		"at the bound":           {[]Condition{a("XDegraded", True, 2*ago)}, "Degraded", "False/AsExpected", "XDegraded", instant},
		"past the bound":         {[]Condition{a("XDegraded", True, 2*ago+instant)}, "Degraded", "True/X_R", "XDegraded", 0},
		"no transition time":     {[]Condition{{Type: "XDegraded", Status: True, Reason: "R", Message: "m-XDegraded"}}, "Degraded", "True/X_R", "XDegraded", 0},
		"good for a moment":      {[]Condition{a("XDegraded", False, 0)}, "Degraded", "False/AsExpected", "XDegraded", 0},
		"unavailable at once":    {[]Condition{a("XAvailable", False, 0)}, "Available", "False/X_R", "XAvailable", 0},
		"progressing at once":    {[]Condition{a("XProgressing", True, 0)}, "Progressing", "True/X_R", "XProgressing", 0},
		"a type of its own":      {[]Condition{a("SlowDegraded", True, 9*ago)}, "Degraded", "False/AsExpected", "SlowDegraded", ago + instant},
		"a type without":         {[]Condition{a("FastDegraded", True, 0)}, "Degraded", "True/Fast_R", "FastDegraded", 0},
		"young Unknown":          {[]Condition{a("XDegraded", Unknown, ago)}, "Degraded", "False/AsExpected", "XDegraded", ago + instant},
		"old Unknown":            {[]Condition{a("XDegraded", Unknown, 3*ago)}, "Degraded", "Unknown/X_R", "XDegraded", 0},
		"one old, one young":     {[]Condition{a("XDegraded", True, 3*ago), a("YDegraded", True, 0)}, "Degraded", "True/X_R", "XDegraded", 2*ago + instant},
		"old Unknown, young bad": {[]Condition{a("XDegraded", Unknown, 3*ago), a("YDegraded", True, 0)}, "Degraded", "Unknown/X_R", "XDegraded", 2*ago + instant},
		"Unknown yields":         {[]Condition{a("XDegraded", Unknown, 3*ago), a("YDegraded", True, 3*ago)}, "Degraded", "True/Y_R", "YDegraded", 0},
	} {
		united, expires := union(c.sources, contract.Union{Inertia: twoMinutes}, noon())
		got, _ := find(united, c.kind)
		lines := "All is well"
		if c.lines != "" {
			var all []string
			for _, kind := range strings.Fields(c.lines) {
				all = append(all, kind+": m-"+kind)
			}
			lines = strings.Join(all, "\n")
		}
		if got.Status+"/"+got.Reason != c.want || got.Message != lines {
			t.Errorf("%s: got %s/%s %q, want %s %q", name, got.Status, got.Reason, got.Message, c.want, lines)
		}
		want := time.Time{}
		if c.expires != 0 {
			want = noon().Add(c.expires)
		}
		if !expires.Equal(want) {
			t.Errorf("%s: inertia ends at %v, want %v", name, expires, want)
		}
	}
}

// A failure reaches the ClusterOperator when its inertia is over, and not before, although nothing else happens; a restart does not delay it.
func TestInertiaWakes(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.union = contract.Union{Inertia: contract.Inertia{All: 90 * time.Second}}
	w.report("cp-1", 0, failed("1", contract.StatusError, "x"))
	w.step()
	w.expect(contract.ConditionDegraded, "True/PluginUnreachable")
	w.memory = Memory{}
	d := w.pass(45 * time.Second)
	if want := noon().Add(90*time.Second + instant); says(w.co, "Degraded") != "False/AsExpected" || !d.NextWake.Equal(want) {
		t.Errorf("ClusterOperator Degraded is %s and the next wake at %v, want False/AsExpected and %v", says(w.co, "Degraded"), d.NextWake, want)
	}
	if got := says(w.co, "Available"); got != "False/KMSPlugins_NoUsableWriteKey" {
		t.Errorf("ClusterOperator Available is %s, want it without inertia", got)
	}
	w.now = d.NextWake
	w.step()
	if got := says(w.co, "Degraded"); got != "True/KMSPlugins_PluginUnreachable" {
		t.Errorf("ClusterOperator Degraded is %s after its inertia", got)
	}
	w.now = w.now.Add(time.Second)
	w.report("cp-1", 0, healthy("1", "k"))
	w.step()
	if got := says(w.co, "Degraded"); got != "False/AsExpected" {
		t.Errorf("ClusterOperator Degraded is %s after the recovery", got)
	}
}

// A ClusterOperator that is left to another program is not written, whatever stands there.
func TestUnionLeft(t *testing.T) {
	in := Input{Now: noon(), Union: contract.Union{Leave: true}, ClusterOperator: []Condition{{Type: contract.ClusterOperatorDegraded, Status: True}}}
	rollups := []Condition{{Type: contract.ConditionDegraded, Status: False, Reason: "R"}}
	if d := (Decision{}).Say(in, rollups); d.WriteClusterOperator || !d.WriteRollups {
		t.Errorf("writes the ClusterOperator: %t, the rollups: %t", d.WriteClusterOperator, d.WriteRollups)
	}
	in.Union.Leave = false
	if d := (Decision{}).Say(in, rollups); !d.WriteClusterOperator {
		t.Error("without Leave the ClusterOperator is written")
	}
}
