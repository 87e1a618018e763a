package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// ending is a way to end the plugin.
type ending func(*ownProcess, context.Context) error

// restart ends the plugin and starts it on the same path. It is a Finding if the plugin does not answer then. how names the signal.
func restart(ctx context.Context, p *Plugin, how string, end ending) error {
	if err := end(p.ownProcess, ctx); err != nil {
		return err
	}
	return startAfter(ctx, p, how)
}

// startAfter starts a plugin that has ended. A plugin that does not start is a Finding, without its output, which may have secrets. It is then
// started once more without the socket file that the last process left, so that other checks can run.
func startAfter(ctx context.Context, p *Plugin, what string) error {
	err := p.Start(ctx)
	if err == nil {
		return nil
	}
	seen := p.seen(err)
	_ = p.revive(ctx) // Session.alive finds it where that fails
	return found("start at the same path after "+what, seen, "Status is answered within "+p.timing.Start.String())
}

// retry is how often a check asks a plugin that has just been started.
const retry = 50 * time.Millisecond

// sealsAgain waits until the plugin encrypts: the KMS may need time after a start.
func sealsAgain(ctx context.Context, p *Plugin) error {
	return p.until(ctx, retry, p.timing.Start, func(ctx context.Context) error {
		_, err := p.Seal(ctx)
		return err
	})
}

func restartAfterStop(ctx context.Context, p *Plugin) error {
	return restart(ctx, p, "SIGTERM", (*ownProcess).end)
}

func restartAfterKill(ctx context.Context, p *Plugin) error {
	must(restart(ctx, p, "SIGKILL", (*ownProcess).Kill))
	return sealsAgain(ctx, p)
}

// restartsInARow is how often the check restarts the plugin, if there is time.
const restartsInARow = 10

func manyRestarts(ctx context.Context, p *Plugin) error {
	n := 0
	for began := time.Now(); n < restartsInARow && time.Since(began) < p.timing.Load; n++ {
		must(restart(ctx, p, fmt.Sprintf("SIGTERM, %d times in a row", n+1), (*ownProcess).end))
	}
	p.Measure("%d restarts", n)
	return nil
}

func dataAfter(signal string, end ending) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, sealed Sealed) error {
		must(restart(ctx, p, signal, end))
		// Until the plugin can, errors are tried again, for the time of two calls at most.
		return p.until(ctx, retry, min(p.timing.Start, 2*p.timing.Call), func(ctx context.Context) error {
			return p.Unseal(ctx, sealed, "Decrypt, after "+signal+" and a start, of what was encrypted before")
		})
	})
}

func keyIDAfterRestart(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	must(restart(ctx, p, "SIGTERM", (*ownProcess).end))
	var after *kmsapi.StatusResponse
	var err error
	p.Poll(ctx, retry, p.timing.Start, func(ctx context.Context) bool { // the KMS may need time after a start
		after, err = p.Status(ctx)
		return err == nil && after.KeyId != ""
	})
	if err != nil {
		return found("Status after a restart", err, "a response")
	}
	if after.KeyId != before.KeyId {
		return found("Status after a restart", after, "key_id "+quote(before.KeyId)+", as before")
	}
	return nil
}
