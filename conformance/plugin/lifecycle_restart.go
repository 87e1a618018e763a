package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// Ids on which other checks of the area depend.
const (
	stopRestart = "KMS2-LIFECYCLE-RESTART-AFTER-SIGTERM"
	killRestart = "KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL"
)

func restartAfterStop() Check {
	return Check{
		Check: conformance.Check{
			ID: stopRestart, Profile: conformance.Extended,
			Title:       "restarts after SIGTERM",
			Rule:        "After SIGTERM the plugin starts again at the same path, and clients that were connected reach it there.",
			Source:      sourceBlackout,
			Consequence: "An upgrade of the plugin leaves kube-apiserver without it: after 3 minutes all writes of encrypted resources fail.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			return restart(ctx, p, "SIGTERM", terminate(p))
		},
	}
}

func restartAfterKill() Check {
	return Check{
		Check: conformance.Check{
			ID: killRestart, Profile: conformance.Extended,
			Title:       "restarts after SIGKILL",
			Rule:        "After SIGKILL, which leaves the socket file behind, the plugin starts again at the same path.",
			Source:      sourceBlackout + "; unix(7): bind fails with EADDRINUSE if the file exists",
			Consequence: "After the kernel has killed the plugin for lack of memory, or a crash, it stays down until somebody removes the file.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopRestart},
		Run: func(ctx context.Context, p *Plugin) error {
			if err := restart(ctx, p, "SIGKILL", p.Kill); err != nil {
				return err
			}
			_, err := sealWhenReady(ctx, p)
			return err
		},
	}
}

// restartsInARow is how often the check restarts the plugin, if there is time.
const restartsInARow = 10

func manyRestarts() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-TEN-RESTARTS", Profile: conformance.Extended,
			Title:       "ten restarts in a row",
			Rule:        "The plugin can be restarted ten times in a row.",
			Source:      sourcePod + "; kubelet restarts a container with restartPolicy Always as often as it ends",
			Consequence: "After some restarts the plugin stays down, and with it all writes of encrypted resources.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopRestart},
		Waits: true,
		Run: func(ctx context.Context, p *Plugin) error {
			n := 0
			for began := time.Now(); n < restartsInARow && time.Since(began) < p.timing.Load; n++ {
				if err := restart(ctx, p, fmt.Sprintf("SIGTERM, %d times in a row", n+1), terminate(p)); err != nil {
					return err
				}
			}
			p.Measure("%d restarts", n)
			return nil
		},
	}
}
