package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusKeyIDAfterCalls() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-AFTER-CALLS", Profile: conformance.Extended,
			Title:       "calls do not change the key_id",
			Rule:        "The key_id of Status is the same before and after Encrypt and Decrypt.",
			Source:      sourceKEP + ": the key_id of Status is authoritative and changes by a rotation only",
			Consequence: "kube-apiserver makes a new data encryption key after its own calls, and all stored objects become stale.",
		},
		After: []string{keyIDStable, RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			before, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			for range 10 {
				sealed, err := p.Seal(ctx)
				if err != nil {
					return err
				}
				if err := p.Unseal(ctx, sealed, "Decrypt"); err != nil {
					return err
				}
			}
			after, err := p.Status(ctx)
			if err != nil {
				return found("Status after ten round trips", err, "a response")
			}
			if after.KeyId != before.KeyId {
				return found("Status after ten round trips", after, "key_id "+quote(before.KeyId)+" as before")
			}
			return nil
		},
	}
}
