package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

// encryptKeyIDPresentID is the id of a check on which the others of Encrypt's key_id depend.
const encryptKeyIDPresentID = "KMS2-ENCRYPT-KEY-ID-PRESENT"

func encryptKeyIDPresent() Check {
	return Check{
		Check: conformance.Check{
			ID: encryptKeyIDPresentID, Profile: conformance.Core,
			Title:       "Encrypt returns a key_id",
			Rule:        "Encrypt returns a key_id that is not empty.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 1; " + sourceEnvelope + ": ValidateKeyID",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID is empty.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			if s.KeyId == "" {
				return found("Encrypt", s.EncryptResponse, "the key_id of Status")
			}
			return nil
		}),
	}
}

const encryptKeyIDSizeID = "KMS2-ENCRYPT-KEY-ID-SIZE"

func encryptKeyIDSize() Check {
	return Check{
		Check: conformance.Check{
			ID: encryptKeyIDSizeID, Profile: conformance.Core,
			Title:       "Encrypt's key_id has at most 1 KiB",
			Rule:        "The key_id that Encrypt returns has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 2; " + sourceEnvelope + ": KeyIDMaxSize",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID exceeds the max size of 1024.",
		},
		After: []string{"KMS2-STATUS-KEY-ID-SIZE", encryptKeyIDPresentID},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			if len(s.KeyId) > maxEncryptKeyIDBytes {
				p.Measure("key_id of %d bytes", len(s.KeyId))
				return found("Encrypt", s.EncryptResponse, "a key_id of 1 to 1024 bytes")
			}
			return nil
		}),
	}
}

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
