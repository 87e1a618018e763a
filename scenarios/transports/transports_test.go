package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func at(second float64) time.Time {
	return time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
}

// recorded is a history with interval 1 s and the nodes cp-1 and cp-2, whose steps last from 10 to 40.
func recorded(more ...history.Event) []history.Event {
	events := []history.Event{
		{At: at(0), Run: &history.Run{Operator: "kubeapiservers", Timing: contract.Timing{Interval: time.Second}}},
		{At: at(0), Expected: &history.Expected{Nodes: []history.ExpectedNode{{Name: "cp-1"}, {Name: "cp-2"}}}},
		{At: at(10), Phase: &history.Phase{Name: history.PhaseSteps}},
		{At: at(40), Phase: &history.Phase{Name: history.PhaseAfter}},
		{At: at(42), Phase: &history.Phase{Name: history.PhaseEnd}},
	}
	events = append(events, more...)
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	return events
}

func action(second float64, id, state string) history.Event {
	return history.Event{At: at(second), Action: &history.Action{ID: id, Verb: "kill", State: state}}
}

func rollup(second float64, degraded, available string) history.Event {
	return history.Event{At: at(second), Object: &history.Object{Resource: "kubeapiservers.operator.openshift.io",
		Conditions: []history.Condition{{Type: contract.ConditionDegraded, Status: degraded}, {Type: contract.ConditionAvailable, Status: available}},
		Owners:     map[string][]string{"condition/a": {"one"}, "condition/b": {"two", "one"}}}}
}

func request(second float64, user, verb, resource string, code int) history.Event {
	return history.Event{At: at(second), Request: &history.Request{User: user, Verb: verb, Resource: resource, Code: code, Completed: at(second), Body: json.RawMessage(`{"a":1}`)}}
}

// reports of a node, one each second but between two instants.
func reports(node string, silentFrom, silentTo float64) (out []history.Event) {
	for s := 1.0; s < 42; s++ {
		if s < silentFrom || s > silentTo {
			out = append(out, request(s, contract.ReporterIdentity(node), "patch", "kubeapiservers.operator.openshift.io", 200))
		}
	}
	return out
}

// killing is a fault from 15 to 25.
func killing() []history.Event {
	return []history.Event{action(15, "steps[1]", history.ActionBegan), action(15.5, "steps[1]", history.ActionDone), action(25, "steps[3]", history.ActionBegan), action(25.5, "steps[3]", history.ActionDone)}
}

func TestBehaviour(t *testing.T) {
	w := window{first: "steps[1]", last: "steps[1]", undo: "steps[3]"}
	quiet := slices.Concat(killing(), reports("cp-1", 99, 99), reports("cp-2", 99, 99), []history.Event{rollup(5, "False", "True")})
	lost := slices.Concat(killing(), reports("cp-1", 16, 26), reports("cp-2", 99, 99), []history.Event{rollup(5, "False", "True"), rollup(20, "Unknown", "True"), rollup(28, "False", "True")})
	for name, c := range map[string]struct {
		events  []history.Event
		plugin  bool
		want    behaviour
		in, not string
	}{
		"not affected": {events: quiet, want: behaviour{statuses: []string{"False"}, gap: time.Second, recovered: true}, in: "not affected", not: "BROKEN"},
		"unknown": {events: lost, in: "False→Unknown, Unknown 8.0 s, no report for 12.0 s, well 2.5 s after",
			want: behaviour{statuses: []string{"False", "Unknown"}, unknown: 8 * time.Second, gap: 12 * time.Second, recovery: 2500 * time.Millisecond, recovered: true, affected: true}},
		"accused": {events: slices.Concat(quiet, []history.Event{rollup(18, "True", "True"), rollup(27, "False", "True")}), in: "REPORTED BROKEN",
			want: behaviour{statuses: []string{"False", "True"}, accused: true, detection: 2500 * time.Millisecond, gap: time.Second, recovery: 1500 * time.Millisecond, recovered: true, affected: true}},
		"detected": {events: slices.Concat(quiet, []history.Event{rollup(18, "True", "True"), rollup(27, "False", "True")}), plugin: true, in: "detected 2.5 s", not: "BROKEN",
			want: behaviour{statuses: []string{"False", "True"}, accused: true, detection: 2500 * time.Millisecond, gap: time.Second, recovery: 1500 * time.Millisecond, recovered: true, affected: true}},
		"unavailable": {events: slices.Concat(quiet, []history.Event{rollup(18, "False", "False"), rollup(27, "False", "True")}), in: "REPORTED BROKEN",
			want: behaviour{statuses: []string{"False"}, accused: true, gap: time.Second, recovered: true}},
		"never well": {events: slices.Concat(killing(), reports("cp-1", 16, 99), reports("cp-2", 99, 99), []history.Event{rollup(5, "False", "True"), rollup(20, "Unknown", "True")}), in: "NOT WELL AT THE END",
			want: behaviour{statuses: []string{"False", "Unknown"}, unknown: 22 * time.Second, gap: 27 * time.Second, recovery: 16500 * time.Millisecond, affected: true}},
		"no fault": {events: reports("cp-1", 99, 99), in: "not measured"},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(recorded(c.events...)).behaviour(w)
			if text := got.text(c.plugin, nil); !strings.Contains(text, c.in) || c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("text %q, expected %q and not %q", text, c.in, c.not)
			}
			c.want.interval = time.Second
			if !slices.Equal(got.statuses, c.want.statuses) {
				t.Errorf("statuses %q, expected %q", got.statuses, c.want.statuses)
			}
			got.statuses, c.want.statuses = nil, nil
			if g, w := got, c.want; g.unknown != w.unknown || g.accused != w.accused || g.detection != w.detection || g.gap != w.gap || g.recovery != w.recovery || g.recovered != w.recovered || g.affected != w.affected {
				t.Errorf("got  %+v\nwant %+v", g, w)
			}
		})
	}
}

// TestSteady: what others write, and what comes before or after the steps, is no load of the reports.
func TestSteady(t *testing.T) {
	const cr = "kubeapiservers.operator.openshift.io"
	l := read(recorded(slices.Concat(reports("cp-1", 99, 99), reports("cp-2", 99, 99), []history.Event{rollup(11, "False", "True"),
		request(20, contract.AggregatorIdentity, "patch", cr, 200), request(21, contract.AggregatorIdentity, "update", "leases.coordination.k8s.io", 200),
		request(22, contract.AggregatorIdentity, "get", cr, 200), request(23, "somebody", "patch", cr, 200), request(24, contract.ReporterIdentity("cp-1"), "patch", cr, 409)})...)).steady()
	const hours = 2 * 30.0 / 3600
	want := load{reports: 61 / hours, rest: 1 / hours, leases: 1 / hours, reads: 1 / hours, bytes: 7 * 62 / hours, refused: 1, managers: 2}
	if l != want {
		t.Errorf("got  %+v\nwant %+v", l, want)
	}
}

func TestDenied(t *testing.T) {
	attempt := func(state string) history.Event {
		return history.Event{Action: &history.Action{Verb: "attempt", State: state}}
	}
	if refused, all := denied([]history.Event{attempt(history.ActionBegan), attempt(history.ActionDone), attempt(history.ActionBegan), attempt(history.ActionFailed)}); refused != 1 || all != 2 {
		t.Errorf("%d of %d, expected 1 of 2", refused, all)
	}
}

func TestViolations(t *testing.T) {
	got := violations(check.Verdict{Invariants: []check.Result{{ID: "A", Status: check.Passed}, {ID: "B", Status: check.Failed}}, Problems: []string{"a problem"}})
	if !slices.Equal(got, []string{"B", "a problem"}) {
		t.Errorf("%q", got)
	}
}

// TestFaults: every scenario is one that could stand in a file, with every way.
func TestFaults(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range scenario.Connectivities() {
		for _, f := range faults() {
			s := f.scenario(way, scenario.ContractConditions, max(3, f.nodes))
			if err := parser.Validate(s); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			var actions []string
			for i, step := range s.Steps {
				if step.Action != nil {
					actions = append(actions, "steps["+string(rune('0'+i))+"]")
				}
			}
			if w := f.span(); f.name != pluginFails && w != (window{}) && (w.first != actions[0] || w.last != actions[len(f.do)-1] || w.undo != actions[len(actions)-1]) {
				t.Errorf("%s: window %+v, actions %q", s.Name, w, actions)
			}
		}
	}
}

func TestTableAndPlots(t *testing.T) {
	c := table{backend: "on paper", ways: []string{"loopback", "stream"}}
	c.put(3, "conditions", "KB written", "loopback", cell{"1.5", 1.5})
	c.put(3, "conditions", "KB written", "stream", cell{"3|0", 3})
	c.put(3, "conditions", "words", "loopback", cell{text: "a & b"})
	c.note("once")
	c.note("once")
	want := "| nodes | form | on paper | loopback | stream |\n|---|---|---|---|---|\n| 3 | conditions | KB written | 1.5 | 3\\|0 |\n| 3 | conditions | words | a & b | not run |\n\nonce\n"
	if got := c.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	all := func(row) bool { return true }
	svg := c.plot("a < b", "KB", all)
	if err := xml.NewDecoder(strings.NewReader(svg)).Decode(new(any)); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("%v in %s", err, svg)
	}
	if strings.Count(svg, "<rect") != 1+2+2 || strings.Contains(svg, "words") {
		t.Errorf("expected two bars and nothing of a row without values: %s", svg)
	}
	if none := c.plot("none", "KB", func(row) bool { return false }); none != "" {
		t.Errorf("expected nothing: %s", none)
	}
}

func TestParseStat(t *testing.T) {
	r, err := parseStat([]byte("7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 12 30 0 0 20 0 1 0 5 999 10 0"))
	if err != nil || r.cpu != 420*time.Millisecond || r.memory != 10*os.Getpagesize() {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "7 (a) S 1", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 x 30 0 0 20 0 1 0 5 999 10 0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{"--backend=kind"}, {"--nodes=0"}, {"--nodes=x"}, {"--backend=local", "--nodes=8"}, {"--ways=pigeon"}, {"--forms=poem"}} {
		if _, err := parse(args, io.Discard); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, expected one line", args, err)
		}
	}
}

// TestCompared simulates one fault with every way: reporters behind a load balancer that is gone are the only ones whose reports stop.
func TestCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	out := t.TempDir()
	var w bytes.Buffer
	if err := run(t.Context(), []string{"--nodes=3", "--faults=load balancer removed", "--out", out}, &w, io.Discard); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(w.String()) {
		cells := strings.Split(line, " | ")
		if !strings.Contains(line, "| load balancer removed |") {
			continue
		}
		if len(cells) != 7 || cells[3] != "not affected" || !strings.HasPrefix(cells[4], "False→Unknown") || cells[5] != "not affected" || !strings.Contains(cells[6], "no report for") {
			t.Errorf("%q", cells)
		}
		if _, err := os.Stat(filepath.Join(out, "gaps.svg")); err != nil {
			t.Error(err)
		}
		return
	}
	t.Errorf("no such row:\n%s", w.String())
}
