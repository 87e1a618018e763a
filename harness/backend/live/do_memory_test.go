package live

import (
	"os"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// The sidecars of a node are bounded together: this process stands for each.
func TestMemoryOfSidecars(t *testing.T) {
	this := func(role, apiServer, node string) history.Process {
		return history.Process{Role: role, APIServer: apiServer, Node: node, PID: os.Getpid()}
	}
	own, err := residentKiB(os.Getpid())
	if err != nil {
		t.Skipf("memory is read from /proc: %v", err)
	}
	pod := []history.Process{this(history.RoleReporter, "", "cp-1"), this(history.RoleAPIServer, "", "cp-1"), this(history.RoleReporter, "", "cp-2")}
	for subject, c := range map[string]struct {
		running []history.Process
		want    string
	}{
		"one":                            {pod, ""},
		"sidecars-over-the-common-bound": {append(pod, this(history.RolePlugin, "", "cp-1"), this(history.RoleReporter, "oauth-apiserver", "cp-1")), "the sidecars of cp-1 have"},
		"none":                           {pod[2:], "have 0 MiB"},
	} {
		err := sidecarsWithin(c.running, "cp-1", 2*own>>10)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", subject, err, c.want)
		}
	}
}
