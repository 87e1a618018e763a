package plugin

import (
	"bytes"
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeSamePlaintext() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-SAME-PLAINTEXT", Profile: conformance.Extended,
			Title:       "one plaintext can be encrypted twice",
			Rule:        "Each of several answers for the same plaintext is decrypted to it. They may be equal or not.",
			Source:      sourceProto + ": rpc Encrypt, rpc Decrypt; " + sourceClient + ": Encrypt is called again after a failure",
			Consequence: "kube-apiserver cannot read what it wrote: failed to decrypt DEK.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			first, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			all := []Sealed{first}
			for range 2 {
				resp, err := p.Encrypt(ctx, first.Plaintext)
				if err != nil {
					return found("Encrypt of a plaintext that was encrypted before", err, "a ciphertext")
				}
				all = append(all, Sealed{first.Plaintext, resp})
			}
			if bytes.Equal(all[0].Ciphertext, all[1].Ciphertext) {
				p.Measure("equal plaintexts get equal ciphertexts")
			}
			for _, s := range all {
				if err := p.Unseal(ctx, s, "Decrypt of one of three ciphertexts of the same plaintext"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
