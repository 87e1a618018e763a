package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// RotationNoticed is the id of the check on which the others of rotations depend.
const RotationNoticed = "KMS2-ROTATION-NOTICED"

func rotation() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-AFTER-CALLS", Profile: conformance.Extended,
			Title:       "calls do not change the key_id",
			Rule:        "The key_id of Status is the same before and after Encrypt and Decrypt.",
			Source:      sourceKEP + ": the key_id of Status is authoritative and changes by a rotation only",
			Consequence: "kube-apiserver makes a new data encryption key after its own calls, and all stored objects become stale.",
		}, After: []string{keyIDStable, RoundTrip}, Run: withStatus(statusKeyIDAfterCalls)},
		rotationCheck(conformance.Check{
			ID:          RotationNoticed,
			Title:       "Status shows a rotation",
			Rule:        "After the KEK is rotated, Status returns another key_id within the time of one poll of a healthy plugin, and stays healthy.",
			Source:      sourceKEP + ": the plugin returns the new key_id in Status when the remote KEK is rotated; " + sourceConfig + ": kmsv2PluginHealthzPositiveInterval, 1 min",
			Consequence: "kube-apiserver goes on encrypting with the old key, and a migration to the new one never ends.",
		}, rotationNoticed, "KMS2-STATUS-HEALTHZ-OK"),
		rotationCheck(conformance.Check{
			ID:          "KMS2-ROTATION-ENCRYPT-FOLLOWS",
			Title:       "Encrypt uses the key that Status names",
			Rule:        "Once Status returns the new key_id, Encrypt returns the same key_id, and its ciphertext can be decrypted.",
			Source:      sourceKEP + ": the key_id of Status is authoritative; " + sourceEnvelope + ": a key_id of Encrypt that differs is discarded",
			Consequence: "kube-apiserver discards the new data encryption key: failed to rotate DEK; after 3 minutes all writes fail.",
		}, rotationEncryptFollows, RotationNoticed, EncryptKeyIDEqualsStatus),
		rotationCheck(conformance.Check{
			ID:          "KMS2-ROTATION-OLD-DECRYPTS",
			Title:       "old ciphertexts can be decrypted",
			Rule:        "What was encrypted with earlier KEKs can be decrypted after two rotations, with the key_id and the annotations of then.",
			Source:      sourceProto + ": DecryptRequest.key_id is what Encrypt returned; " + sourceKEP + ": old keys must remain usable until all data are migrated",
			Consequence: "kube-apiserver cannot read the objects that are not migrated yet: failed to decrypt DEK.",
		}, rotationOldDecrypts, RotationNoticed, "KMS2-DECRYPT-AFTER-STATUS"),
		rotationCheck(conformance.Check{
			ID:          "KMS2-ROTATION-NO-RETURN",
			Title:       "the old key_id does not return",
			Rule:        "Once Status has returned the new key_id, it does not return the old one again, on any connection.",
			Source:      sourceKEP + ": the key_id must not flip-flop during a rotation",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and writes with the old key again.",
		}, rotationNoReturn, RotationNoticed),
		rotationCheck(conformance.Check{
			ID:          "KMS2-ROTATION-NEW-ID",
			Title:       "each rotation gives a new key_id",
			Rule:        "The key_ids of three rotations in a row all differ: none is used again.",
			Source:      sourceKEP + ": a key_id is never used again, even when an old KEK returns",
			Consequence: "kube-apiserver takes objects that were encrypted with an older key for current ones, and they are never migrated.",
		}, rotationNewID, RotationNoticed, "KMS2-ROTATION-NO-RETURN"),
		rotationCheck(conformance.Check{
			ID:          "KMS2-ROTATION-SERVES",
			Title:       "a rotation interrupts nothing",
			Rule:        "From before a rotation until it is noticed, each Encrypt and Decrypt succeeds, and each Encrypt returns the old or the new key_id.",
			Source:      sourceKEP + ": rotation needs no restart and no downtime of the plugin",
			Consequence: "Reads and writes of encrypted resources fail during each rotation.",
		}, withStatus(rotationServes), RotationNoticed, DecryptAnyOrder, "KMS2-ROTATION-ENCRYPT-FOLLOWS", "KMS2-ROTATION-OLD-DECRYPTS", "KMS2-ROTATION-NO-RETURN"),
	}
}

// rotationCheck fills in what all checks of rotations have in common.
func rotationCheck(c conformance.Check, run func(context.Context, *Plugin) error, after ...string) Check {
	c.Profile, c.Needs = conformance.Extended, []conformance.Capability{HookRotate}
	return Check{
		Check: c, Waits: true, Run: run,
		After: append([]string{RoundTrip, "KMS2-STATUS-KEY-ID-SIZE", keyIDStable, "KMS2-STATUS-KEY-ID-AFTER-CALLS"}, after...),
	}
}

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
