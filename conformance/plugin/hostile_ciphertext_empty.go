package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func hostileCiphertextEmpty() Check {
	return hostileCheck(conformance.Check{
		ID:          hostileEmptyID,
		Title:       "an empty ciphertext is not decrypted",
		Rule:        "Decrypt of an empty ciphertext is an error, or returns the plaintext of the annotations.",
		Source:      sourceDecrypted + "; EncryptResponse.ciphertext is not empty",
		Consequence: "kube-apiserver takes an empty plaintext for its seed. The error does not name the plugin.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		q := s.request(p)
		q.Ciphertext = nil
		return tryDecrypt(ctx, p, "Decrypt of an empty ciphertext", q, s.Plaintext)
	}, hostileGarbageID)
}
