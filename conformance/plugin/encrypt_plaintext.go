package plugin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
)

const envelopeEdgeBytesID = "KMS2-ENCRYPT-EDGE-BYTES"

func envelopeEdgeBytes(ctx context.Context, p *Plugin) error {
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
}

func envelopeUniformBytes(ctx context.Context, p *Plugin) error {
	return each([]byte{0x00, 0xFF}, func(b byte) error {
		return mayEncrypt(ctx, p, bytes.Repeat([]byte{b}, SeedBytes), fmt.Sprintf("32 bytes 0x%02X", b))
	})
}

func envelopeTextBytes(ctx context.Context, p *Plugin) error {
	return each([]string{
		"QUJDREVGR0hJSktMTU5PUFFSU1RVVldY", "0123456789abcdef0123456789abcdef", `{"key":"value","list":[1,2,3,4]}`,
		"-----BEGIN PRIVATE KEY-----\nMII=", "vault:v1:QUJDREVGR0hJSktMTU5PUFE=", "%41%42%43\\x44\\u0045&#70;$G{H}\t\r\n",
	}, func(text string) error {
		plaintext := fmt.Sprintf("%-*.*s", SeedBytes, SeedBytes, text)
		return mayEncrypt(ctx, p, []byte(plaintext), "the text "+quote(plaintext))
	})
}

func plaintextEmpty(ctx context.Context, p *Plugin) error {
	return mayEncrypt(ctx, p, nil, "an empty plaintext")
}

// tryPlaintexts encrypts and decrypts plaintexts of some sizes, which a plugin may refuse.
func tryPlaintexts(sizes ...int) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		return each(sizes, func(size int) error { return mayEncrypt(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size)) })
	}
}

// Ids of checks on which those of larger plaintexts depend.
const (
	plaintextLargeID   = "KMS2-ENCRYPT-PLAINTEXT-LARGE"
	plaintextGrowingID = "KMS2-ENCRYPT-PLAINTEXT-GROWING"
)

func plaintextSizes(id, title, after string, sizes ...int) Check {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
	return Check{Check: conformance.Check{
		ID: id, Profile: conformance.Robustness,
		Title:       title,
		Rule:        "Plaintexts of " + list + " bytes are decrypted to the same bytes, or Encrypt refuses them.",
		Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
		Consequence: "None today: kube-apiserver encrypts 32 bytes. Another client, or a later release, loses what it encrypts.",
	}, After: []string{after}, Run: tryPlaintexts(sizes...)}
}
