package plugin

import (
	"bytes"
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

func envelopeUniformBytes() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-UNIFORM-BYTES", Profile: conformance.Robustness,
			Title:       "32 equal bytes are a plaintext",
			Rule:        "32 bytes 0x00 and 32 bytes 0xFF are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes of any value",
			Consequence: "None today: kube-apiserver encrypts random bytes.",
		},
		After: []string{envelopeEdgeBytesID},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, b := range []byte{0x00, 0xFF} {
				what := fmt.Sprintf("32 bytes 0x%02X", b)
				refused, err := mayRoundTrip(ctx, p, bytes.Repeat([]byte{b}, SeedBytes), what)
				if err != nil {
					return err
				}
				if refused {
					p.Measure("%s are refused", what)
				}
			}
			return nil
		},
	}
}
