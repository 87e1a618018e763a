package plugin

import (
	"bytes"
	"context"
	"crypto/subtle"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

func ciphertextPresent() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-PRESENT", Profile: conformance.Core,
			Title:       "ciphertext is not empty",
			Rule:        "Encrypt returns a ciphertext that is not empty.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 1; " + sourceEnvelope + ": validateEncryptedDEKSource",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is empty.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			if len(s.Ciphertext) == 0 {
				return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
			}
			return nil
		}),
	}
}

func ciphertextSize() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-SIZE", Profile: conformance.Core,
			Title:       "ciphertext has at most 1 KiB",
			Rule:        "The ciphertext of a seed of 32 bytes has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 2; " + sourceEnvelope + ": encryptedDEKSourceMaxSize",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is larger than the max size of 1024.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			p.Measure("ciphertext of %d bytes", len(s.Ciphertext))
			if len(s.Ciphertext) > maxCiphertextBytes {
				return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
			}
			return nil
		}),
	}
}

const ciphertextHidesID = "KMS2-ENCRYPT-CIPHERTEXT-HIDES"

func ciphertextHides() Check {
	return Check{
		Check: conformance.Check{
			ID: ciphertextHidesID, Profile: conformance.Core,
			Title:       "ciphertext hides the plaintext",
			Rule:        "The ciphertext contains no part of the plaintext, as it is or in a usual encoding.",
			Source:      sourceProto + ": EncryptResponse.ciphertext is the encrypted data",
			Consequence: "kube-apiserver stores its seed in clear beside the data that the seed encrypts. A reader of etcd can decrypt the data.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			if how := reveals(s.Ciphertext, s.Plaintext); how != "" {
				return found("Encrypt of 32 bytes", "the ciphertext has a part of the plaintext "+how, "a ciphertext without the plaintext")
			}
			return nil
		}),
	}
}

func ciphertextKeystream() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-KEYSTREAM", Profile: conformance.Extended,
			Title:       "no two ciphertexts share a key stream",
			Rule:        "The difference of two ciphertexts does not show the difference of the plaintexts: nonces are not used twice.",
			Source:      sourceProto + ": EncryptResponse.ciphertext is the encrypted data; NIST SP 800-38D, section 8: a nonce is used once for each key",
			Consequence: "A reader of etcd that knows one seed of kube-apiserver can compute the others.",
		},
		After: []string{RoundTrip, ciphertextHidesID},
		Run: func(ctx context.Context, p *Plugin) error {
			var all []Sealed
			for range 4 {
				s, err := p.Seal(ctx)
				if err != nil {
					return err
				}
				if slices.ContainsFunc(all, func(o Sealed) bool { return shareKeystream(o, s) }) {
					return found("Encrypt of two plaintexts", "the exclusive or of the ciphertexts has the exclusive or of the plaintexts", "ciphertexts that are independent of each other")
				}
				all = append(all, s)
			}
			return nil
		},
	}
}

// shareKeystream reports whether two ciphertexts differ, somewhere, in just the bits in which their plaintexts differ.
func shareKeystream(a, b Sealed) bool {
	difference := make([]byte, SeedBytes)
	subtle.XORBytes(difference, a.Plaintext, b.Plaintext)
	window := make([]byte, SeedBytes)
	left, right := decodings(a.Ciphertext), decodings(b.Ciphertext)
	for i := range min(len(left), len(right)) {
		l, r := left[i].data, right[i].data
		for at := 0; at+SeedBytes <= min(len(l), len(r)); at++ {
			subtle.XORBytes(window, l[at:at+SeedBytes], r[at:at+SeedBytes])
			if slices.Equal(window, difference) {
				return true
			}
		}
	}
	return false
}

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
