package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// failingCalls is how many refused calls come in a row.
const failingCalls = 200

func hostileKeepsServing() Check {
	return hostileCheck(conformance.Check{
		ID: "KMS2-HOSTILE-KEEPS-SERVING", Profile: conformance.Extended,
		Title:       "failures do not add up",
		Rule:        "After 200 Decrypts in a row that fail, the plugin encrypts and decrypts as before.",
		Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": each read of an object that cannot be decrypted calls Decrypt again",
		Consequence: "One damaged object, which clients read again and again, makes all data unreadable: failed to decrypt DEK.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		n, err := repeat(p, failingCalls, p.timing.Load, func(i int) error {
			call, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			var d delivery
			q := &kmsapi.DecryptRequest{Uid: p.UID(), Ciphertext: p.Bytes(SeedBytes), KeyId: s.KeyId, Annotations: s.Annotations}
			if _, err := p.Client().Decrypt(call, q, d.options()...); err != nil {
				return d.judge(fmt.Sprintf("Decrypt of random bytes, call %d of %d", i+1, failingCalls), err, p.timing.Call)
			}
			return nil
		})
		if err != nil {
			return err
		}
		after := fmt.Sprintf(" after %d Decrypts of random bytes", n)
		if err := p.Unseal(ctx, s, "Decrypt of a valid ciphertext"+after); err != nil {
			return err
		}
		fresh, err := p.Seal(ctx)
		if err != nil {
			return err
		}
		return p.Unseal(ctx, fresh, "Decrypt of a new ciphertext"+after)
	})
}
