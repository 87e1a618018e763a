package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

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
