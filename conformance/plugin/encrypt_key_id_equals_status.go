package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

// EncryptKeyIDEqualsStatus is the id of the check that Encrypt and Status return one key_id.
const EncryptKeyIDEqualsStatus = "KMS2-ENCRYPT-KEY-ID-EQUALS-STATUS"

func encryptKeyIDEqualsStatus() Check {
	return Check{
		Check: conformance.Check{
			ID: EncryptKeyIDEqualsStatus, Profile: conformance.Core,
			Title:       "Encrypt's key_id is that of Status",
			Rule:        "Encrypt returns the key_id that Status returns.",
			Source:      sourceKEP + ", section key_id and rotation: the key_id of Status is authoritative; " + sourceConfig + ": rotateDEKOnKeyIDChange",
			Consequence: "kube-apiserver discards the answer and reports the provider as unhealthy: failed to rotate DEK. It never gets a key to write with.",
		},
		After: []string{"KMS2-STATUS-KEY-ID-PRESENT", encryptKeyIDPresentID, encryptKeyIDSizeID},
		Run: func(ctx context.Context, p *Plugin) error {
			before, err := p.Status(ctx)
			if err != nil {
				return found("Status before Encrypt", err, "a response")
			}
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if s.KeyId == before.KeyId {
				return nil
			}
			after, err := p.Status(ctx) // the KEK may have been rotated in between
			if err != nil {
				return found("Status after Encrypt", err, "a response")
			}
			if s.KeyId != after.KeyId {
				return found("Encrypt", s.EncryptResponse, "the key_id of Status, "+quote(after.KeyId))
			}
			return nil
		},
	}
}
