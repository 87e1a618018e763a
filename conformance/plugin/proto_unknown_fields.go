package plugin

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoUnknownFields() Check {
	return hostileCheck(conformance.Check{
		ID: "KMS2-PROTO-UNKNOWN-FIELDS", Profile: conformance.Extended,
		Title:       "unknown fields are ignored",
		Rule:        "Encrypt and Decrypt with fields that the API does not have are served as without them.",
		Source:      "protobuf.dev/programming-guides/proto3, section Unknown Fields: a parser accepts fields that it does not know",
		Consequence: "A later kube-apiserver that sends a new field cannot use the plugin.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		unknown := func(b []byte) []byte {
			b = protowire.AppendVarint(protowire.AppendTag(b, 100, protowire.VarintType), 7)
			b = protowire.AppendFixed64(protowire.AppendTag(b, 101, protowire.Fixed64Type), 7)
			return bytesField(b, 102, []byte("new"))
		}
		const encrypt, decrypt = "Encrypt with unknown fields", "Decrypt with unknown fields"
		if err := rawUnseal(ctx, p, decrypt, s, unknown(decryptMessage(s.request(p), false))); err != nil {
			return err
		}
		plaintext := p.Bytes(SeedBytes)
		data, err := rawCall(ctx, p, encrypt, kmsapi.KeyManagementService_Encrypt_FullMethodName, unknown(encryptMessage(plaintext, p.UID())))
		if err != nil {
			return err
		}
		resp, err := readEncryptResponse(encrypt, data)
		if err != nil {
			return err
		}
		return p.Unseal(ctx, Sealed{plaintext, resp}, "Decrypt of the ciphertext of an "+encrypt)
	})
}
