package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// healthy reports whether Status answers in time that the plugin is healthy.
func (p *Plugin) healthy(ctx context.Context) bool {
	resp, err := p.Status(ctx)
	return err == nil && resp.Healthz == "ok"
}

func (p *Plugin) untilHealthy(ctx context.Context) (time.Duration, bool) {
	return p.Poll(ctx, pollInterval, p.timing.Notice, p.healthy)
}

// untilUnhealthy waits until Status shows that the KMS is broken. It does not wait where it waited in vain in the same mode before.
func (p *Plugin) untilUnhealthy(ctx context.Context) (took time.Duration, ok bool) {
	if p.steady[p.broken] {
		return 0, false
	}
	took, ok = p.Poll(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) bool { return !p.healthy(ctx) })
	p.steady[p.broken] = !ok
	return took, ok
}

// works encrypts and decrypts, and decrypts what was encrypted before. It returns the first error.
func (p *Plugin) works(ctx context.Context, before Sealed) error {
	now, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	return errors.Join(p.Unseal(ctx, now, "Decrypt"), p.Unseal(ctx, before, "Decrypt of what was encrypted before"))
}

// keyIDs are those that Status returns. A plugin that goes back and forth after a rotation, which another check judges, has two.
func (p *Plugin) keyIDs(ctx context.Context) (ids []string, err error) {
	return ids, eachStatus(ctx, p, 10, func(_ int, resp *kmsapi.StatusResponse) error {
		ids = append(ids, resp.KeyId)
		return nil
	})
}

// recovered waits until the plugin is healthy, and judges it then.
func (p *Plugin) recovered(ctx context.Context, before []string) error {
	took, ok := p.untilHealthy(ctx)
	resp, err := p.Status(ctx)
	var seen any = resp
	if err != nil {
		seen = err
	}
	if !ok {
		return found(fmt.Sprintf("Status %v after the KMS was restored", p.timing.Notice), seen, `healthz "ok"`)
	}
	p.Measure("the error outlived the recovery by %v", took.Round(time.Millisecond))
	if err != nil || !slices.Contains(before, resp.KeyId) {
		return found("Status after the recovery", seen, "key_id "+quote(before[0])+" as before")
	}
	// The plugin may learn of the recovery by Status before its connections to the KMS have recovered: the round trip has the same bound.
	return p.until(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) error { return p.roundTrip(ctx, "Decrypt after the recovery") })
}
