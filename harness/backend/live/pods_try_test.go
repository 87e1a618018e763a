package live

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/process"
)

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
