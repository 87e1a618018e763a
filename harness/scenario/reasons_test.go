package scenario_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
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
