package live

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// memory compares what the sidecars of a node take together with a bound.
func (ps *processes) memory(_ context.Context, a *scenario.Memory) error {
	return sidecarsWithin(ps.e.controlPlane.Running(), a.Node, a.Most)
}

func sidecarsWithin(running []history.Process, node string, most int) error {
	sum, each := 0, ""
	for _, p := range running {
		if p.Node != node || p.Role != history.RoleReporter && p.Role != history.RolePlugin {
			continue
		}
		kib, err := residentKiB(p.PID)
		if err != nil {
			return fmt.Errorf("memory of %s: %w", cluster.NameOf(p), err)
		}
		sum += kib
		each += fmt.Sprintf(", %s %d", cluster.NameOf(p), kib>>10)
	}
	if sum == 0 || sum > most<<10 {
		return fmt.Errorf("the sidecars of %s have %d MiB%s, expected at most %d and some at all", node, sum>>10, each, most)
	}
	return nil
}

var resident = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB$`)

// residentKiB is the resident memory of a process. Pages that processes share, such as those of one program, count once for all of them.
func residentKiB(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	m := resident.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("smaps_rollup has no Pss: %.200s", text)
	}
	return strconv.Atoi(string(m[1]))
}
