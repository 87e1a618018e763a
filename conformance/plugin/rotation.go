package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// rotate rotates the key and waits until Status shows another key_id. It returns the answers of Status before and after.
func (p *Plugin) rotate(ctx context.Context) (before, after *kmsapi.StatusResponse, took time.Duration, err error) {
	if before, err = p.Status(ctx); err != nil {
		return nil, nil, 0, found("Status before the rotation", err, "a response")
	}
	if err = p.Rotate(ctx); err != nil {
		return nil, nil, 0, err
	}
	took, changed := p.Poll(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) bool {
		resp, err := p.Status(ctx)
		if err != nil {
			return false
		}
		after = resp
		return resp.KeyId != before.KeyId
	})
	if !changed {
		return before, after, took, found(fmt.Sprintf("Status for %v after the hook rotated the key", p.timing.Notice), "key_id "+quote(before.KeyId)+" in each answer", "another key_id")
	}
	return before, after, took, nil
}

func rotationNoticed(ctx context.Context, p *Plugin) error {
	_, after, took, err := p.rotate(ctx)
	if err != nil {
		return err
	}
	p.Measure("noticed after %v", took.Round(time.Millisecond))
	if after.Healthz != "ok" || after.KeyId == "" || len(after.KeyId) > maxKeyID {
		return found("Status after the rotation", after, fmt.Sprintf(`healthz "ok" and a key_id of 1 to %d bytes`, maxKeyID))
	}
	return nil
}

func rotationEncryptFollows(ctx context.Context, p *Plugin) error {
	_, after, _, err := p.rotate(ctx)
	if err != nil {
		return err
	}
	sealed, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	if sealed.KeyId != after.KeyId {
		return found("Encrypt after Status returned the new key_id", sealed.EncryptResponse, "key_id "+quote(after.KeyId))
	}
	return p.Unseal(ctx, sealed, "Decrypt of what was encrypted with the new key")
}

func rotationOldDecrypts(ctx context.Context, p *Plugin) error {
	var old []Sealed
	for range 2 {
		sealed, err := p.Seal(ctx)
		if err != nil {
			return err
		}
		old = append(old, sealed)
		if _, _, _, err := p.rotate(ctx); err != nil {
			return err
		}
	}
	return p.unsealAll(ctx, old, "Decrypt of what was encrypted one or two rotations ago")
}

func rotationNoReturn(ctx context.Context, p *Plugin) error {
	before, _, _, err := p.rotate(ctx)
	if err != nil {
		return err
	}
	calls := 0
	return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		ask := p.Status
		if calls++; calls%10 == 0 {
			ask = func(ctx context.Context) (*kmsapi.StatusResponse, error) { return p.statusOnNew(ctx) }
		}
		if resp, err := ask(ctx); err == nil && resp.KeyId == before.KeyId {
			return found(fmt.Sprintf("Status, call %d after it returned the new key_id", calls), resp, "the new key_id")
		}
		return nil
	})
}

func rotationNewID(ctx context.Context, p *Plugin) error {
	seen := map[string]int{}
	for n := range 3 {
		before, after, _, err := p.rotate(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			seen[before.KeyId] = 0
		}
		if at, again := seen[after.KeyId]; again {
			return found(fmt.Sprintf("Status after rotation %d", n+1), after, fmt.Sprintf("a key_id other than that of after rotation %d", at))
		}
		seen[after.KeyId] = n + 1
	}
	return nil
}

func rotationServes(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	sealed, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	if err := p.Rotate(ctx); err != nil {
		return err
	}
	var judged error
	used := map[string]bool{}
	_, changed := p.Poll(ctx, pollInterval, p.timing.Notice, func(ctx context.Context) bool {
		next, err := p.Seal(ctx)
		if err == nil {
			used[next.KeyId] = true
			err = p.Unseal(ctx, next, "Decrypt during a rotation")
		}
		if err == nil {
			err = p.Unseal(ctx, sealed, "Decrypt during a rotation, of what was encrypted before")
		}
		judged = err
		resp, statusErr := p.Status(ctx)
		return judged != nil || statusErr == nil && resp.KeyId != before.KeyId
	})
	if judged != nil || !changed {
		return judged // a rotation that is not noticed is another finding
	}
	after, err := p.Status(ctx)
	if err != nil {
		return found("Status after the rotation", err, "a response")
	}
	for id := range used {
		if id != before.KeyId && id != after.KeyId {
			return found("Encrypt during a rotation", "key_id "+quote(id), "key_id "+quote(before.KeyId)+" or "+quote(after.KeyId))
		}
	}
	return nil
}
