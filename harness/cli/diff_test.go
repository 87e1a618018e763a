package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/program"
)

// Two runs that agree end with 0, two that do not with 1; a hint is no difference.
func TestDiffOfRuns(t *testing.T) {
	run := func(status result.Status, uid string) string {
		out := t.TempDir()
		dir := filepath.Join(out, "plugin-hangs")
		if err := (result.Result{Scenario: "plugin-hangs", Status: status}).Save(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, result.VerdictJSON), []byte(`{"invariants":[{"id":"UID","status":"`+uid+`"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return out
	}
	good, bad, unjudged := run(result.Passed, "passed"), run(result.Failed, "failed"), run(result.Passed, "not-judged")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"the same":   {[]string{good, good}, program.ExitPassed, "differences: 0 in 0 of 1 scenarios, 0 hints"},
		"a failure":  {[]string{good, bad}, program.ExitFailed, "differences: 2 in 1 of 1 scenarios, 0 hints"},
		"no hints":   {[]string{good, unjudged}, program.ExitPassed, "differences: 0 in 0 of 1 scenarios, 0 hints"},
		"hints":      {[]string{"--hints", good, unjudged}, program.ExitPassed, "differences: 0 in 0 of 1 scenarios, 1 hints"},
		"the reason": {[]string{bad, good}, program.ExitFailed, "violated"},
	} {
		code, out, errs := command(t, append([]string{"diff"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.want) || errs != "" {
			t.Errorf("%s: exit %d, stderr %q, stdout\n%s", name, code, errs, out)
		}
	}
}
