package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

func restartAfterStop(ctx context.Context, p *Plugin) error {
	return restart(ctx, p, "SIGTERM", (*ownProcess).end)
}

func restartAfterKill(ctx context.Context, p *Plugin) error {
	if err := restart(ctx, p, "SIGKILL", (*ownProcess).Kill); err != nil {
		return err
	}
	return sealsAgain(ctx, p)
}

// restartsInARow is how often the check restarts the plugin, if there is time.
const restartsInARow = 10

func manyRestarts(ctx context.Context, p *Plugin) error {
	n := 0
	for began := time.Now(); n < restartsInARow && time.Since(began) < p.timing.Load; n++ {
		if err := restart(ctx, p, fmt.Sprintf("SIGTERM, %d times in a row", n+1), (*ownProcess).end); err != nil {
			return err
		}
	}
	p.Measure("%d restarts", n)
	return nil
}

func dataAfter(signal string, end ending) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, sealed Sealed) error {
		if err := restart(ctx, p, signal, end); err != nil {
			return err
		}
		// Until the plugin can, errors are tried again, for the time of two calls at most.
		return p.until(ctx, retry, min(p.timing.Start, 2*p.timing.Call), func(ctx context.Context) error {
			return p.Unseal(ctx, sealed, "Decrypt, after "+signal+" and a start, of what was encrypted before")
		})
	})
}

func keyIDAfterRestart(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	if err := restart(ctx, p, "SIGTERM", (*ownProcess).end); err != nil {
		return err
	}
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
