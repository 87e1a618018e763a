package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeUIDReused() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-UID-REUSED", Profile: conformance.Robustness,
			Title:       "uid does not identify an answer",
			Rule:        "A request with a uid that another request had is refused or answered by its own content, never with the answer of the other request.",
			Source:      sourceProto + ": EncryptRequest.uid identifies the request; " + sourceKEP + ", section Observability: the uid is for logs and correlation",
			Consequence: "A caller that repeats a uid gets the ciphertext or the plaintext of another operation.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			uid := p.UID()
			var all []Sealed
			for _, what := range []string{"Encrypt with a new uid", "Encrypt of another plaintext with the same uid"} {
				plaintext := p.Bytes(SeedBytes)
				resp, err := tryEncrypt(ctx, p, what, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext})
				if err != nil {
					return err
				}
				if resp != nil {
					all = append(all, Sealed{plaintext, resp})
				}
			}
			for _, s := range all {
				if err := p.Unseal(ctx, s, "Decrypt of a ciphertext whose uid another request had too"); err != nil {
					return err
				}
			}
			uid = p.UID()
			for _, s := range all {
				q := s.request(p)
				q.Uid = uid
				if err := tryDecrypt(ctx, p, "Decrypt of several ciphertexts with the same uid", q, s.Plaintext); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
