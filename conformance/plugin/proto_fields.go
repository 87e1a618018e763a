package plugin

import (
	"context"
	"slices"

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

func protoFieldOrder() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-FIELD-ORDER",
		Title:       "fields may come in any order",
		Rule:        "Decrypt with fields and annotations in descending order is served.",
		Source:      sourceProtobuf + ", section Field Order: a parser accepts fields in any order; the entries of a map have no order",
		Consequence: "A kube-apiserver with another protobuf library, or another release of it, cannot read its data.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		p.Measure("%d annotations", len(s.Annotations))
		return rawUnseal(ctx, p, "Decrypt with fields in descending order", s, decryptMessage(s.request(p), true))
	})
}

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

func protoWrongTypes() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-WRONG-TYPES",
		Title:       "fields of wrong types end nothing",
		Rule:        "A message whose fields have other wire types than those of the API is answered or refused.",
		Source:      sourceProtobuf + ", section Message Structure; " + sourceGRPC,
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		numbers := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<63)
		numbers = protowire.AppendFixed64(protowire.AppendTag(numbers, 2, protowire.Fixed64Type), 1)
		numbers = protowire.AppendFixed32(protowire.AppendTag(numbers, 3, protowire.Fixed32Type), 1)
		for _, c := range []struct {
			what    string
			message []byte
		}{
			{"with numbers in place of texts", numbers}, {"with a group that does not end", protowire.AppendTag(nil, 1, protowire.StartGroupType)},
			{"with the field number 0", []byte{0x02, 0x00}}, {"with an unknown wire type", []byte{0x0f, 0x01}}, {"with random bytes", p.Bytes(64)},
			{"with an annotation that is no map entry", bytesField(nil, fieldDecryptAnnotations, []byte{0xff})},
		} {
			for _, method := range []string{kmsapi.KeyManagementService_Encrypt_FullMethodName, kmsapi.KeyManagementService_Decrypt_FullMethodName} {
				if _, err := tryRaw(ctx, p, method+" "+c.what, method, c.message); err != nil {
					return err
				}
			}
		}
		return nil
	}, hostileUIDID, hostileNoAnnotationsID)
}

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

func protoEmpty() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-EMPTY",
		Title:       "an empty request decrypts nothing",
		Rule:        "Decrypt with an empty message is an error. Encrypt with an empty message is answered or refused.",
		Source:      sourceDecrypted + "; " + sourceProtobuf + ": all fields of an empty message have their default values",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		if _, err := tryRaw(ctx, p, "Encrypt with an empty message", kmsapi.KeyManagementService_Encrypt_FullMethodName, []byte{}); err != nil {
			return err
		}
		return tryRawDecrypt(ctx, p, "Decrypt with an empty message", []byte{})
	}, hostileEmptyID, hostileNoKeyIDID, hostileUIDID, hostileNoAnnotationsID)
}
