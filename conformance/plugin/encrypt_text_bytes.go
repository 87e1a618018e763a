package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeTextBytes() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-TEXT-BYTES", Profile: conformance.Robustness,
			Title:       "a plaintext is not interpreted",
			Rule:        "32 bytes that look like base64, hexadecimal digits, JSON, PEM or a ciphertext are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes without a format",
			Consequence: "None today: kube-apiserver encrypts random bytes, which have no format.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, text := range []string{
				"QUJDREVGR0hJSktMTU5PUFFSU1RVVldY", "0123456789abcdef0123456789abcdef", `{"key":"value","list":[1,2,3,4]}`,
				"-----BEGIN PRIVATE KEY-----\nMII=", "vault:v1:QUJDREVGR0hJSktMTU5PUFE=", "%41%42%43\\x44\\u0045&#70;$G{H}\t\r\n",
			} {
				plaintext := fmt.Sprintf("%-*.*s", SeedBytes, SeedBytes, text)
				if _, err := mayRoundTrip(ctx, p, []byte(plaintext), "the text "+quote(plaintext)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
