package plugin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

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

func plaintextEmpty() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-PLAINTEXT-EMPTY", Profile: conformance.Robustness,
			Title:       "empty plaintext is kept or refused",
			Rule:        "An empty plaintext is decrypted to an empty plaintext, or Encrypt refuses it.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no minimal length",
			Consequence: "None today: kube-apiserver encrypts 32 bytes.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			refused, err := mayRoundTrip(ctx, p, nil, "an empty plaintext")
			if refused {
				p.Measure("an empty plaintext is refused")
			}
			return err
		},
	}
}

func plaintextSmall() Check {
	return plaintextSizes("KMS2-ENCRYPT-PLAINTEXT-SMALL", "small plaintexts are kept or refused", RoundTrip, 1, 15, 16, 17, 31)
}

const plaintextLargeID = "KMS2-ENCRYPT-PLAINTEXT-LARGE"

func plaintextLarge() Check {
	return plaintextSizes(plaintextLargeID, "larger plaintexts are kept or refused", RoundTrip, 33, 48, 64, 255, 256)
}

const plaintextGrowingID = "KMS2-ENCRYPT-PLAINTEXT-GROWING"

func plaintextGrowing() Check {
	return plaintextSizes(plaintextGrowingID, "plaintexts of up to 64 KiB are kept or refused", plaintextLargeID, 512, 1<<10, 4<<10, 16<<10, 64<<10)
}

func plaintextSizes(id, title, after string, sizes ...int) Check {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "Plaintexts of " + list + " bytes are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
			Consequence: "None today: kube-apiserver encrypts 32 bytes. Another client, or a later release, loses what it encrypts.",
		},
		After: []string{after},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, size := range sizes {
				refused, err := mayRoundTrip(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size))
				if err != nil {
					return err
				}
				if refused {
					p.Measure("%d bytes are refused", size)
				}
			}
			return nil
		},
	}
}
