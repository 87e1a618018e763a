package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

// stableEncrypts is how many answers of Encrypt are compared.
const stableEncrypts = 50

func encryptKeyIDStable() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-KEY-ID-STABLE", Profile: conformance.Extended,
			Title:       "Encrypt's key_id is stable",
			Rule:        "While Status returns one key_id, every Encrypt returns it.",
			Source:      sourceKEP + ", section key_id and rotation: the key_id is stable and does not flip-flop between values",
			Consequence: "kube-apiserver discards some answers and reports the provider as unhealthy now and then: failed to rotate DEK.",
		},
		After: []string{EncryptKeyIDEqualsStatus},
		Run: func(ctx context.Context, p *Plugin) error {
			before, err := p.Status(ctx)
			if err != nil {
				return found("Status before many Encrypts", err, "a response")
			}
			var other error
			n, err := repeat(p, stableEncrypts, p.timing.Load, func(i int) error {
				s, err := p.Seal(ctx)
				if err == nil && s.KeyId != before.KeyId && other == nil {
					other = found(fmt.Sprintf("Encrypt, call %d of %d", i+1, stableEncrypts), s.EncryptResponse, "the key_id of Status, "+quote(before.KeyId))
				}
				return err
			})
			if err != nil {
				return err
			}
			after, err := p.Status(ctx)
			if err != nil {
				return found(fmt.Sprintf("Status after %d Encrypts", n), err, "a response")
			}
			if after.KeyId != before.KeyId {
				p.Measure("the key_id of Status changed meanwhile, so nothing was compared")
				return nil
			}
			return other
		},
	}
}
