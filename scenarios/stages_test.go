package scenarios_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/scenarios"
)

// envStages names a file for rule tests of the failure stages.
const envStages = "KMSHARNESS_STAGES"

// scrapeEvery is Prometheus' usual interval.
const scrapeEvery = 30 * time.Second

// stage is a failure stage of the plugin management enhancement: the scenario, and how long its outage is in true time.
type stage struct {
	name        string
	least, most time.Duration
	alert       bool // KMSPluginUnhealthy fires before the end of the outage
}

func stages() []stage {
	return []stage{
		{"failure-stage-short", 0, time.Minute, false},
		{"failure-stage-medium", time.Minute, 5 * time.Minute, false},
		{"failure-stage-long", 5 * time.Minute, 10 * time.Minute, true},
	}
}

// The failure stages with an interval of 30 s: each passes and lasts as long as its stage does. What a Prometheus would have scraped
// meanwhile is the input of rule tests, which `make alerts` runs (ci/alerts): only the long one fires. They are written to the file that
// envStages names, and kept nowhere: every change of behaviour moves virtual time.
func TestFailureStagesInTrueTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join("..", "ci", "alerts", "kms-plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("# What a Prometheus would have scraped in simulations of the failure stages, with an interval of 30 s.\n"+
		"rule_files: [%q]\nevaluation_interval: 30s\ntests:\n", rules)
	for _, st := range stages() {
		events := simulated(t, all, st.name)
		from, to := outage(t, events)
		if d := to.Sub(from); d < st.least || d >= st.most {
			t.Errorf("%s: the outage lasts %v, want %v to %v", st.name, d, st.least, st.most)
		}
		text += st.ruleTest(events, to)
	}
	if file := os.Getenv(envStages); file != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func simulated(t *testing.T, all []*scenario.Scenario, name string) []history.Event {
	t.Helper()
	for _, s := range all {
		if s.Name != name {
			continue
		}
		b := virtual.New(virtual.Options{Timing: contract.DefaultTiming()})
		r := engine.Execute(t.Context(), b, s, engine.Execution{Out: t.TempDir(), Artifacts: engine.ArtifactsNever, Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1}})
		if r.Status != result.Passed {
			t.Fatalf("%s with an interval of 30 s: %s", name, r.Text())
		}
		events, err := history.ReadFile(filepath.Join(r.Dir, "history.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	t.Fatalf("there is no scenario %s", name)
	return nil
}

// outage is the time between the actions that cut and restore the remote KMS.
func outage(t *testing.T, events []history.Event) (from, to time.Time) {
	t.Helper()
	for _, e := range events {
		switch {
		case e.Action == nil || e.Action.Verb != "kms":
		case from.IsZero():
			from = e.At
		case to.IsZero() && strings.Contains(fmt.Sprint(e.Action.Params), "restore"):
			to = e.At
		}
	}
	if from.IsZero() || to.IsZero() {
		t.Fatal("the remote KMS was not cut and restored")
	}
	return from, to
}

// ruleTest is a test of the rules: at every scrape up to the end of the outage, and at the end of the run.
func (st stage) ruleTest(events []history.Event, restored time.Time) string {
	began, end := events[0].At, events[len(events)-1].At
	var b strings.Builder
	fmt.Fprintf(&b, "- name: %s\n  interval: %s\n  input_series:\n", st.name, scrapeEvery)
	for _, s := range seriesOf(events, scrapeEvery) {
		fmt.Fprintf(&b, "  - {series: '%s', values: %q}\n", s.Selector(), s.Notation())
	}
	b.WriteString("  alert_rule_test:\n")
	last := restored.Sub(began).Truncate(scrapeEvery)
	for at := time.Minute; at < last; at += time.Minute {
		if at <= 5*time.Minute || !st.alert {
			fmt.Fprintf(&b, "  - {eval_time: %s, alertname: KMSPluginUnhealthy}\n", promTime(at))
		}
	}
	fmt.Fprintf(&b, "  - eval_time: %s\n    alertname: KMSPluginUnhealthy\n", promTime(last))
	if st.alert {
		b.WriteString("    exp_alerts:\n")
		for _, node := range []string{"cp-1", "cp-2", "cp-3"} {
			fmt.Fprintf(&b, "    - exp_labels: {severity: critical, node: %s, keyID: \"1\"}\n", node)
		}
	}
	fmt.Fprintf(&b, "  - {eval_time: %s, alertname: KMSPluginUnhealthy}\n", promTime(end.Sub(began).Truncate(scrapeEvery)))
	return b.String()
}

// promTime writes a duration as Prometheus does.
func promTime(d time.Duration) string {
	return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
}
