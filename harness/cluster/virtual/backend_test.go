package virtual_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/scenarios"
)

// TestScenarios runs scenarios of the catalogue; KMSHARNESS_SCENARIOS names them, separated by spaces, or is all.
func TestScenarios(t *testing.T) {
	names := os.Getenv("KMSHARNESS_SCENARIOS")
	if names == "" {
		names = "steady-state plugin-hangs kek-rotation reporter-restarted-quickly"
	}
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if names != "all" && !strings.Contains(" "+names+" ", " "+s.Name+" ") {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			out := t.TempDir()
			began := time.Now()
			r := engine.Execute(t.Context(), virtual.New(virtual.Options{}), s, engine.Execution{Out: out,
				Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1}})
			t.Logf("%s: %s in %v", s.Name, r.Status, time.Since(began))
			if r.Status != result.Passed && r.Status != result.NotSupported {
				verdict, _ := os.ReadFile(filepath.Join(out, s.Name, "verdict.txt"))
				t.Errorf("%v %+v\n%s", r.Reasons, r.Failures, verdict)
			}
		})
	}
}
