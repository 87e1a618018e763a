package plugin

import (
	"context"
	"crypto/subtle"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

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
