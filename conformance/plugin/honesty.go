package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// whileBroken breaks the KMS, runs judge, and restores the KMS in any case. It waits until the plugin is healthy again, so that the next check
// begins with a healthy one.
func whileBroken(ctx context.Context, p *Plugin, mode string, judge func(context.Context) error) error {
	broken := p.Break(ctx, mode)
	var err error
	if broken == nil {
		err = caught(func() error { return judge(ctx) })
	}
	restored := p.Restore(ctx)
	if broken != nil || restored != nil {
		return errors.Join(broken, restored)
	}
	_, _ = p.untilHealthy(ctx) // recovers judges it
	return err
}

func failureVisible(mode string) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, before Sealed) error {
		return whileBroken(ctx, p, mode, func(ctx context.Context) error {
			if took, ok := p.untilUnhealthy(ctx); ok {
				p.Measure("ok outlived the failure by %v", took.Round(time.Millisecond))
				return nil
			}
			if err := p.works(ctx, before); err != nil {
				return found(fmt.Sprintf("Status for %v after the hook made the KMS %s, then Encrypt and Decrypt", p.timing.Notice, mode),
					fmt.Sprintf(`healthz "ok" in each answer, and %v`, err), `an error or another healthz than "ok"`)
			}
			p.Measure("Encrypt and Decrypt work without the KMS")
			return nil
		})
	})
}

func statusInTime(mode string) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		return whileBroken(ctx, p, mode, func(ctx context.Context) error {
			p.untilUnhealthy(ctx)
			for n := range 5 {
				if resp, err := p.Status(ctx); err != nil && gone(err) {
					return found(fmt.Sprintf("Status while the KMS is in mode %s, call %d", mode, n+1), err, "an answer within "+p.timing.Call.String())
				} else if err == nil && resp.Healthz == "" {
					return found("Status while the KMS is in mode "+mode, resp, "a healthz that says what is wrong")
				}
			}
			return nil
		})
	}
}

func keyIDWhileBroken(mode string) func(context.Context, *Plugin, *kmsapi.StatusResponse) error {
	return func(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
		return whileBroken(ctx, p, mode, func(ctx context.Context) error {
			p.untilUnhealthy(ctx)
			resp, err := p.Status(ctx)
			if err == nil && resp.KeyId != "" && resp.KeyId != before.KeyId {
				return found("Status while the KMS is in mode "+mode, resp, "key_id "+quote(before.KeyId)+" or none")
			}
			return nil
		})
	}
}

// recovers breaks the KMS, uses the plugin meanwhile, restores the KMS and judges the plugin then.
func recovers(mode string) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, sealed Sealed) error {
		before := need(p.keyIDs(ctx))
		broken := p.Break(ctx, mode)
		switch {
		case broken != nil:
		case mode == ModeSlow:
			_, _ = p.Encrypt(ctx, p.Bytes(SeedBytes)) // its deadline passes, or it is answered late
		default:
			p.untilUnhealthy(ctx)
			_ = p.works(ctx, sealed) // it may fail, but the plugin must not end
		}
		must(errors.Join(broken, p.Restore(ctx)))
		if end, ended := p.ended(); ended {
			return found("Encrypt and Decrypt while the KMS is in mode "+mode, end, "an error, from a process that goes on")
		}
		return p.recovered(ctx, before)
	})
}

func noFalseSuccess(ctx context.Context, p *Plugin) error {
	var sealed []Sealed
	must(whileBroken(ctx, p, ModeFail, func(ctx context.Context) error {
		for range 5 {
			if s, err := p.Seal(ctx); err == nil {
				sealed = append(sealed, s)
			}
		}
		return nil
	}))
	p.Measure("%d of 5 calls of Encrypt succeeded while the KMS failed", len(sealed))
	return p.unsealAll(ctx, sealed, "Decrypt after the KMS was restored, of what Encrypt returned while it failed")
}

func dataAfterFailure(ctx context.Context, p *Plugin, sealed Sealed) error {
	must(whileBroken(ctx, p, ModeFail, func(ctx context.Context) error {
		p.untilUnhealthy(ctx)
		_, _ = p.Decrypt(ctx, sealed.EncryptResponse) // may fail, or be answered from a cache
		return nil
	}))
	return p.Unseal(ctx, sealed, "Decrypt after the KMS was restored, of what was encrypted before it failed")
}

func statusWhileSlow(ctx context.Context, p *Plugin) error {
	return whileBroken(ctx, p, ModeSlow, func(ctx context.Context) error {
		return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
			if _, err := p.Status(ctx); err != nil && gone(err) {
				return found("Status while the KMS is slow", err, "an answer within "+p.timing.Call.String())
			}
			return nil
		})
	})
}

// healthy reports whether Status answers in time that the plugin is healthy.
func (p *Plugin) healthy(ctx context.Context) bool {
	resp, err := p.Status(ctx)
	return err == nil && resp.Healthz == "ok"
}

func (p *Plugin) untilHealthy(ctx context.Context) (time.Duration, bool) {
	return p.Poll(ctx, pollInterval, p.timing.Notice, p.healthy)
}

// heal waits until the plugin is healthy, or starts it again, so that the next check begins with a healthy one.
func (p *Plugin) heal(ctx context.Context) error {
	if _, ok := p.untilHealthy(ctx); ok || !p.owned() {
		return nil
	}
	return p.revive(ctx)
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
