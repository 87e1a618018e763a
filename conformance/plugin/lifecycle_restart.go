package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// Ids on which other checks of the area depend.
const (
	stopRestart = "KMS2-LIFECYCLE-RESTART-AFTER-SIGTERM"
	killRestart = "KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL"
	dataKept    = "KMS2-LIFECYCLE-DATA-AFTER-SIGTERM"
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

func dataAfter(id, signal string, after []string, end ending) Check {
	return Check{Check: conformance.Check{
		ID: id, Profile: conformance.Extended,
		Title:       "decrypts after " + signal,
		Rule:        "After " + signal + " and a start, the plugin decrypts what it encrypted before.",
		Source:      sourceKEP + ", Metadata: Decrypt gets what Encrypt returned, and \"no state coordination is required between different instances of the KMS plugin\"",
		Consequence: "All data that was encrypted before the restart is lost.",
		Needs:       []conformance.Capability{Command},
	}, After: after, Run: withSealed(func(ctx context.Context, p *Plugin, sealed Sealed) error {
		if err := restart(ctx, p, signal, end); err != nil {
			return err
		}
		// Until the plugin can, errors are tried again, for the time of two calls at most.
		return p.until(ctx, retry, min(p.timing.Start, 2*p.timing.Call), func(ctx context.Context) error {
			return p.Unseal(ctx, sealed, "Decrypt, after "+signal+" and a start, of what was encrypted before")
		})
	})}
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
