package plugin

import (
	"context"
	"fmt"
	"slices"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func decryptRepeated() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-REPEATED", Profile: conformance.Extended,
			Title:       "Decrypt can be repeated",
			Rule:        "Each Decrypt of one ciphertext returns the plaintext, however often it was decrypted before.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": TransformFromStorage calls Decrypt whenever its cache has no such seed",
			Consequence: "kube-apiserver reads the data until its next restart, and never again: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			for _, what := range []string{"first Decrypt of a ciphertext", "second Decrypt of a ciphertext", "third Decrypt of a ciphertext"} {
				if err := p.Unseal(ctx, s, what); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// DecryptAnyOrder is the id of the check that the order of Decrypts is free.
const DecryptAnyOrder = "KMS2-DECRYPT-ANY-ORDER"

// orderedSeals is how many ciphertexts are decrypted in reverse.
const orderedSeals = 100

func decryptAnyOrder() Check {
	return Check{
		Check: conformance.Check{
			ID: DecryptAnyOrder, Profile: conformance.Extended,
			Title:       "the order of Decrypts is free",
			Rule:        "100 ciphertexts are decrypted in the reverse of the order in which they were made.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": TransformFromStorage calls Decrypt in the order in which objects are read",
			Consequence: "kube-apiserver can read some objects only if it reads them before others: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			var all []Sealed
			_, err := repeat(p, orderedSeals, p.timing.Load/2, func(int) error {
				s, err := p.Seal(ctx)
				all = append(all, s)
				return err
			})
			if err != nil {
				return err
			}
			for i, s := range slices.Backward(all) {
				if err := p.Unseal(ctx, s, fmt.Sprintf("Decrypt of ciphertext %d of %d, in reverse order", i+1, len(all))); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func decryptOtherConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-OTHER-CONNECTION", Profile: conformance.Extended,
			Title:       "Decrypt works over another connection",
			Rule:        "What was encrypted over one connection is decrypted over another, without a Status before.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceClient + ": each API server has its own connection and connects again after a failure",
			Consequence: "After a restart of kube-apiserver or a lost connection its data cannot be read: failed to decrypt DEK.",
		},
		After: []string{RoundTrip, SecondConnection},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			conn, err := p.Dial()
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			const what = "Decrypt over a new connection"
			resp, err := kmsapi.NewKeyManagementServiceClient(conn).Decrypt(ctx, s.request(p))
			if err != nil {
				return found(what, err, "the plaintext that was encrypted")
			}
			if string(resp.Plaintext) != string(s.Plaintext) {
				return found(what, fmt.Sprintf("%d bytes that differ from the plaintext", len(resp.Plaintext)), "the plaintext that was encrypted")
			}
			return nil
		}),
	}
}

// laterEncrypts is how many Encrypts come between Encrypt and Decrypt of one plaintext.
const laterEncrypts = 200

func decryptLater() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-LATER", Profile: conformance.Extended,
			Title:       "Decrypt works after many Encrypts",
			Rule:        "A ciphertext is decrypted after 200 further Encrypts.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceEnvelope + ": the seed of each start and each rotation stays in use until its data is rewritten",
			Consequence: "kube-apiserver can read only what was written recently: failed to decrypt DEK. Older data is lost.",
		},
		After: []string{RoundTrip},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			n, err := repeat(p, laterEncrypts, p.timing.Load, func(int) error {
				_, err := p.Seal(ctx)
				return err
			})
			if err != nil {
				return err
			}
			return p.Unseal(ctx, s, fmt.Sprintf("Decrypt after %d further Encrypts", n))
		}),
	}
}

func decryptAfterStatus() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-AFTER-STATUS", Profile: conformance.Extended,
			Title:       "Status does not invalidate a ciphertext",
			Rule:        "A ciphertext is decrypted after further calls of Status.",
			Source:      sourceProto + ": rpc Status is meant to be polled; rpc Decrypt",
			Consequence: "kube-apiserver polls Status once a minute, and its data cannot be read afterwards: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			for range 3 {
				if _, err := p.Status(ctx); err != nil {
					return found("Status between Encrypt and Decrypt", err, "a response")
				}
			}
			return p.Unseal(ctx, s, "Decrypt after three calls of Status")
		}),
	}
}
