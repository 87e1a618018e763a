package plugin

import (
	"bytes"
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

const envelopeEdgeBytesID = "KMS2-ENCRYPT-EDGE-BYTES"

func envelopeEdgeBytes() Check {
	return Check{
		Check: conformance.Check{
			ID: envelopeEdgeBytesID, Profile: conformance.Core,
			Title:       "any byte may begin and end a seed",
			Rule:        "A seed of 32 bytes that begins or ends with zeros, white space or bytes that look like padding is decrypted to the same 32 bytes.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes; " + sourceEnvelope + ": GenerateTransformer encrypts random bytes",
			Consequence: "Some seeds of kube-apiserver cannot be restored. What was written with such a seed is lost.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, edge := range []struct {
				what, begin, end string
			}{
				{"begins with a zero", "\x00", ""}, {"begins with four zeros", "\x00\x00\x00\x00", ""},
				{"ends with a zero", "", "\x00"}, {"ends with four zeros", "", "\x00\x00\x00\x00"},
				{"begins and ends with a line feed", "\n", "\n"}, {"begins and ends with a space", " ", " "},
				{"ends with the byte 1", "", "\x01"}, {"ends with 16 bytes 16", "", string(bytes.Repeat([]byte{16}, 16))},
				{"ends with the bits 1000 0000 and zeros", "", "\x80\x00\x00\x00"},
			} {
				plaintext := p.Bytes(SeedBytes)
				copy(plaintext, edge.begin)
				copy(plaintext[SeedBytes-len(edge.end):], edge.end)
				resp, err := p.Encrypt(ctx, plaintext)
				if err != nil {
					return found("Encrypt of a seed that "+edge.what, err, "a ciphertext")
				}
				if err := p.Unseal(ctx, Sealed{plaintext, resp}, "Decrypt of a seed that "+edge.what); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
