package scenario_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func TestStatusForReason(t *testing.T) {
	for cel, want := range map[string]string{
		`rollup.degraded.reason == "PluginUnhealthy"`:                  `rollup.degraded.status == "True"`,
		`rollup.degraded.reason == 'ReportStale' && kmsActive`:         `rollup.degraded.status == "Unknown" && kmsActive`,
		`apiServer["a"].rollup.progressing.reason == "AsExpected"`:     `apiServer["a"].rollup.progressing.status == "False"`,
		`rollup.available.reason == "AsExpected"`:                      `rollup.available.status == "True"`,
		`clusterOperator.degraded.reason == "AsExpected"`:              `clusterOperator.degraded.status == "False"`,
		`rollup.degraded.reason == "SomethingElse"`:                    `rollup.degraded.reason == "SomethingElse"`,
		`conditions["KMSPluginsDegraded"].reason == "AsExpected"`:      `conditions["KMSPluginsDegraded"].reason == "AsExpected"`,
		`rollup.degraded.message.contains("reason == \"AsExpected\"")`: `rollup.degraded.message.contains("reason == \"AsExpected\"")`,
	} {
		if got := scenario.StatusForReason(cel); got != want {
			t.Errorf("%s\n got %s\nwant %s", cel, got, want)
		}
	}
}

// TestStatusesOnly: no expectation of the catalogue demands a reason of an aggregator that need not share it, all still parse, and what must never have a
// reason may have its status.
func TestStatusesOnly(t *testing.T) {
	p, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.Load("../../scenarios/catalogue")
	if err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile(`(rollup|clusterOperator)\.[a-z]+\.reason`)
	for _, s := range all {
		before, _ := s.Encode()
		out, changed := s.StatusesOnly()
		text, err := out.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := s.Encode(); string(again) != string(before) {
			t.Errorf("%s: it was changed itself", s.Name)
		}
		if found := reason.FindString(string(text)); found != "" {
			t.Errorf("%s: %s is left", s.Name, found)
		}
		if wants := reason.Match(before); wants != (len(changed) > 0) {
			t.Errorf("%s: changed %v", s.Name, changed)
		}
		file := filepath.Join(t.TempDir(), s.Name+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(file); err != nil {
			t.Error(err)
		}
		if s.Name == "load-balancer-not-ready" && !slices.ContainsFunc(changed, func(at string) bool { return strings.HasPrefix(at, "steps[") }) {
			t.Errorf("%s: changed %v", s.Name, changed)
		}
	}
}
