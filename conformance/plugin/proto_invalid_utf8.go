package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoInvalidUTF8() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-INVALID-UTF8",
		Title:       "texts that are no UTF-8 end nothing",
		Rule:        "Encrypt and Decrypt with a uid or a key_id that is no valid UTF-8 are refused, or served by their other fields.",
		Source:      "protobuf.dev/programming-guides/proto3, section Scalar Value Types: a string contains UTF-8; " + sourceGRPC,
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		const invalid, encrypt = "\xff\xfe-\xc3\x28-\xed\xa0\x80", "Encrypt with a uid that is no UTF-8"
		plaintext := p.Bytes(SeedBytes)
		data, err := tryRaw(ctx, p, encrypt, kmsapi.KeyManagementService_Encrypt_FullMethodName, encryptMessage(plaintext, invalid))
		if err != nil {
			return err
		}
		if data != nil {
			resp, err := readEncryptResponse(encrypt, data)
			if err != nil {
				return err
			}
			if err := p.Unseal(ctx, Sealed{plaintext, resp}, "Decrypt of the ciphertext of an "+encrypt); err != nil {
				return err
			}
		}
		uid, key := s.request(p), s.request(p)
		uid.Uid, key.KeyId = invalid, invalid
		if err := tryRawDecrypt(ctx, p, "Decrypt with a uid that is no UTF-8", decryptMessage(uid, false), s.Plaintext); err != nil {
			return err
		}
		return tryRawDecrypt(ctx, p, "Decrypt with a key_id that is no UTF-8", decryptMessage(key, false), s.Plaintext)
	})
}
