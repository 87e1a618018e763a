package plugin

import (
	"context"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoTruncated() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-TRUNCATED",
		Title:       "a truncated message is refused",
		Rule:        "A message that ends within a field, or whose field claims 2 GiB, is refused and not served in part.",
		Source:      sourceProtobuf + ", section Length-Delimited Records",
		Consequence: "The plugin encrypts or decrypts something else than what was sent.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		encrypt, decrypt := encryptMessage(p.Bytes(SeedBytes), p.UID()), decryptMessage(s.request(p), false)
		claim := func(message []byte, size uint64) []byte {
			return append(protowire.AppendVarint(protowire.AppendTag(slices.Clone(message), 2, protowire.BytesType), size), "short"...)
		}
		const ofEncrypt, ofDecrypt = kmsapi.KeyManagementService_Encrypt_FullMethodName, kmsapi.KeyManagementService_Decrypt_FullMethodName
		for _, c := range []struct {
			what, method string
			message      []byte
		}{
			{"Encrypt without the last byte of the message", ofEncrypt, encrypt[:len(encrypt)-1]},
			{"Encrypt without the end of the plaintext", ofEncrypt, encrypt[:SeedBytes/2]},
			{"Encrypt with a field that claims 2 GiB", ofEncrypt, claim(encrypt, 1<<31)},
			{"Encrypt with a field that claims 2^62 bytes", ofEncrypt, claim(encrypt, 1<<62)},
			{"Decrypt without the last byte of the message", ofDecrypt, decrypt[:len(decrypt)-1]},
			{"Decrypt with a field that claims 2 GiB", ofDecrypt, claim(decrypt, 1<<31)},
		} {
			data, err := tryRaw(ctx, p, c.what, c.method, c.message)
			if err != nil {
				return err
			}
			if data != nil {
				return found(c.what, "success", "an error")
			}
		}
		return nil
	})
}
