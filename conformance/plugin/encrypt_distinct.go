package plugin

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeDistinct() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-DISTINCT", Profile: conformance.Extended,
			Title:       "different plaintexts, different ciphertexts",
			Rule:        "Plaintexts that differ, if only in one bit, get answers that differ in the ciphertext or in the annotations.",
			Source:      sourceEnvelope + ": generateCacheKey identifies a seed by ciphertext, key_id and annotations",
			Consequence: "kube-apiserver takes one seed for another. What was written with the other cannot be read.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			base := p.Bytes(SeedBytes)
			var all []Sealed
			for _, flip := range []int{-1, 0, SeedBytes / 2, SeedBytes - 1} {
				plaintext := bytes.Clone(base)
				if flip >= 0 {
					plaintext[flip] ^= 1
				}
				resp, err := p.Encrypt(ctx, plaintext)
				if err != nil {
					return found("Encrypt of one of several similar plaintexts", err, "a ciphertext")
				}
				for _, other := range all {
					if bytes.Equal(other.Ciphertext, resp.Ciphertext) && other.KeyId == resp.KeyId && maps.EqualFunc(other.Annotations, resp.Annotations, slices.Equal[[]byte]) {
						return found("Encrypt of two plaintexts that differ in one bit", "ciphertext, key_id and annotations are equal", "answers that differ")
					}
				}
				all = append(all, Sealed{plaintext, resp})
			}
			return nil
		},
	}
}
