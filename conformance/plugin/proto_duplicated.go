package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoDuplicated() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-DUPLICATED",
		Title:       "the last of two equal fields counts",
		Rule:        "Encrypt with two plaintexts encrypts the last one, or refuses the request. Decrypt with two ciphertexts does the same.",
		Source:      sourceProtobuf + ", section Last One Wins",
		Consequence: "The plugin encrypts something else than what a kube-apiserver with another protobuf library sends.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		const encrypt, decrypt = "Encrypt with two plaintexts", "Decrypt with two ciphertexts"
		plaintext := p.Bytes(SeedBytes)
		message := append(bytesField(nil, fieldEncryptPlaintext, p.Bytes(SeedBytes)), encryptMessage(plaintext, p.UID())...)
		data, err := tryRaw(ctx, p, encrypt, kmsapi.KeyManagementService_Encrypt_FullMethodName, message)
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
		message = append(bytesField(nil, fieldDecryptCiphertext, p.Bytes(SeedBytes)), decryptMessage(s.request(p), false)...)
		return tryRawDecrypt(ctx, p, decrypt, message, s.Plaintext)
	})
}
