package live

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// The bound of a check grows with the operator's patience, and stays below the time for which the operator waits.
func TestPatientChecks(t *testing.T) {
	for patience, want := range map[int]time.Duration{0: 8 * time.Second, 1: 8 * time.Second, 4: 32 * time.Second} {
		o := undertest.Operator{Patience: patience}
		if got := patient(checkTimeout, o); got != want || got+checkReserve >= patient(operatorCheckTimeout, o) {
			t.Errorf("patience %d: a check takes %v, the operator waits %v", patience, got, patient(operatorCheckTimeout, o))
		}
	}
}

func TestCheckWithoutResult(t *testing.T) {
	for want, s := range map[string]Status{
		"the check ended without a result: exit code 0":                          {},
		"the check ended without a result: exit code 2: unknown flag: --x Usage": {Exit: process.Exit{Code: 2}, Crashed: true, Output: "unknown flag: --x\n\x1b\nUsage\n"},
	} {
		if got := withoutResult(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
