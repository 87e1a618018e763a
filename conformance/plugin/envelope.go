package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// Ids of checks on which others depend.
const (
	// EncryptAnswers is the id of the check that Encrypt works at all.
	EncryptAnswers = "KMS2-ENCRYPT-ANSWERS"
	// RoundTrip is the id of the check that Decrypt returns what was encrypted.
	RoundTrip = "KMS2-ENCRYPT-ROUND-TRIP"
)

// Limits of kube-apiserver for what Encrypt returns, in bytes (envelope.go).
const (
	maxCiphertextBytes   = 1024
	maxEncryptKeyIDBytes = 1024
	maxAnnotationsBytes  = 32 << 10
)

// envelope are the checks of Encrypt and Decrypt with valid requests.
func envelope() []Check {
	return []Check{
		encryptAnswers(), ciphertextPresent(), ciphertextSize(), encryptKeyIDPresent(), encryptKeyIDSize(), encryptKeyIDEqualsStatus(),
		annotationKeys(), annotationSize(), envelopeRoundTrip(), envelopeEdgeBytes(),
		envelopeDistinct(), ciphertextHides(), ciphertextKeystream(), annotationsHide(), encryptKeyIDStable(),
		envelopeSamePlaintext(), decryptRepeated(), decryptAnyOrder(), decryptOtherConnection(), decryptLater(), decryptAfterStatus(),
		envelopeUIDReused(), envelopeUniformBytes(), envelopeTextBytes(),
		plaintextEmpty(), plaintextSmall(), plaintextLarge(), plaintextGrowing(),
	}
}

func encryptAnswers() Check {
	return Check{
		Check: conformance.Check{
			ID: EncryptAnswers, Profile: conformance.Core,
			Title:       "Encrypt answers",
			Rule:        "Encrypt of a seed of 32 bytes returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Encrypt; " + sourceEnvelope + ": GenerateTransformer encrypts a seed of MinSeedSizeExtendedNonceGCM (32) bytes",
			Consequence: "kube-apiserver has no key to write with: failed to encrypt DEK. Writes of encrypted resources fail.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			_, err := p.Seal(ctx)
			return err
		},
	}
}

func envelopeRoundTrip() Check {
	return Check{
		Check: conformance.Check{
			ID: RoundTrip, Profile: conformance.Core,
			Title:       "Decrypt returns what was encrypted",
			Rule:        "Decrypt with the ciphertext, key_id and annotations of an Encrypt, and a uid of its own, returns the 32 bytes that were encrypted.",
			Source:      sourceKEP + ", section key_id and rotation: DecryptRequest passes the key_id and annotations of EncryptResponse; " + sourceEnvelope + ": TransformFromStorage makes a new uid",
			Consequence: "kube-apiserver cannot read what it wrote after a restart: failed to decrypt DEK. The data is lost.",
		},
		After: []string{EncryptAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			for range 3 {
				s, err := p.Seal(ctx)
				if err != nil {
					return err
				}
				if err := p.Unseal(ctx, s, "Decrypt with what Encrypt returned"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

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
