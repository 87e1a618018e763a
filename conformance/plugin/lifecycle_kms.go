package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// startedWithoutKMS makes the KMS fail, starts the plugin again, and runs judge with the first answer of Status. It restores the KMS.
func startedWithoutKMS(ctx context.Context, p *Plugin, judge func(context.Context, *kmsapi.StatusResponse) error) error {
	err := caught(func() error {
		must(p.Break(ctx, ModeFail))
		must(p.end(ctx))
		must(p.Launch(ctx))
		return judge(ctx, p.firstStatus(ctx))
	})
	return errors.Join(err, p.Restore(ctx))
}

// afterwards leaves the check with a plugin that runs and is healthy.
func afterwards(judge JudgeFunc) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		err := caught(func() error { return judge(ctx, p) })
		if p.Running() {
			_ = p.heal(ctx)
		} else {
			_ = p.revive(ctx)
		}
		return err
	}
}

// firstStatus waits until the plugin that was launched answers Status. It is nil if that is an error, if there is no answer, or if the process ends.
func (p *Plugin) firstStatus(ctx context.Context) (resp *kmsapi.StatusResponse) {
	p.Poll(ctx, 20*time.Millisecond, p.timing.Start, func(ctx context.Context) bool {
		if !p.Running() {
			return true
		}
		if p.connect(ctx) != nil {
			return false
		}
		p.conn.ResetConnectBackoff()
		var err error
		resp, err = p.Status(ctx)
		return err == nil || !gone(err)
	})
	return resp
}

func startWithoutKMS(ctx context.Context, p *Plugin) error {
	before := need(p.keyIDs(ctx))
	must(startedWithoutKMS(ctx, p, func(ctx context.Context, _ *kmsapi.StatusResponse) error {
		return p.watch(ctx, p.timing.Watch, func(context.Context) error {
			if how, ended := p.ended(); ended {
				return found("start while the KMS fails", how, "a process that goes on, whose Status shows the failure")
			}
			return nil
		})
	}))
	return p.recovered(ctx, before)
}

func startWithoutKMSNotOK(ctx context.Context, p *Plugin) error {
	before := need(p.Seal(ctx))
	return startedWithoutKMS(ctx, p, func(ctx context.Context, first *kmsapi.StatusResponse) error {
		return p.watchFrom(ctx, first, func(resp *kmsapi.StatusResponse) error {
			if resp.Healthz != "ok" {
				return nil
			}
			if err := p.works(ctx, before); err != nil {
				return found("Status after a start while the KMS fails, then Encrypt and Decrypt", fmt.Sprintf(`healthz "ok", and %v`, err), `an error or another healthz than "ok"`)
			}
			return nil
		})
	})
}

func startWithoutKMSKeyID(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	return startedWithoutKMS(ctx, p, func(ctx context.Context, first *kmsapi.StatusResponse) error {
		return p.watchFrom(ctx, first, func(resp *kmsapi.StatusResponse) error {
			if resp.KeyId != "" && resp.KeyId != before.KeyId {
				return found("Status after a start while the KMS fails", resp, "key_id "+quote(before.KeyId)+" or none")
			}
			return nil
		})
	})
}

// watchFrom judges a first answer of Status, and those that follow for a time. Errors of Status are not judged.
func (p *Plugin) watchFrom(ctx context.Context, first *kmsapi.StatusResponse, judge func(*kmsapi.StatusResponse) error) error {
	if first == nil {
		first = &kmsapi.StatusResponse{}
	}
	must(judge(first))
	return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		if resp, err := p.Status(ctx); err == nil {
			return judge(resp)
		}
		return nil
	})
}

// keyIDAtOtherAddress starts the plugin with the second address of its KMS, and then with the first one again.
func keyIDAtOtherAddress(ctx context.Context, p *Plugin) error {
	sealed := need(p.Seal(ctx))
	first := p.spec
	p.spec = p.specWith(map[string]string{"address": p.addresses[1]})
	defer func() {
		p.spec = first
		_ = p.end(ctx)
		_ = p.Start(ctx) // Session.alive finds it where that fails
	}()
	must(p.end(ctx))
	if err := p.Start(ctx); err != nil {
		return unsupported{"with the second address of --kms-addresses the plugin did not start: " + show(err)}
	}
	var now Sealed
	if err := p.until(ctx, retry, p.timing.Start, func(ctx context.Context) (err error) {
		now, err = p.Seal(ctx)
		return err
	}); err != nil {
		return unsupported{"with the second address of --kms-addresses the plugin does not encrypt: " + clip(err.Error())}
	}
	if now.KeyId != sealed.KeyId {
		return found("Encrypt after a start with another address of the same KMS", now.EncryptResponse, "key_id "+quote(sealed.KeyId)+", as with the first address")
	}
	return p.Unseal(ctx, sealed, "Decrypt with another address of the same KMS")
}
