package plugin

import (
	"context"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"
)

const (
	ofEncrypt = kmsapi.KeyManagementService_Encrypt_FullMethodName
	ofDecrypt = kmsapi.KeyManagementService_Decrypt_FullMethodName
)

func protoUnknownFields(ctx context.Context, p *Plugin, s Sealed) error {
	unknown := func(b []byte) []byte {
		b = protowire.AppendVarint(protowire.AppendTag(b, 100, protowire.VarintType), 7)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 101, protowire.Fixed64Type), 7)
		return bytesField(b, 102, []byte("new"))
	}
	const encrypt = "Encrypt with unknown fields"
	must(rawUnseal(ctx, p, "Decrypt with unknown fields", s, unknown(decryptMessage(s.request(p), false))))
	plaintext := p.Bytes(SeedBytes)
	data := need(rawCall(ctx, p, encrypt, ofEncrypt, unknown(encryptMessage(plaintext, p.UID()))))
	return unsealRaw(ctx, p, encrypt, plaintext, data)
}

func protoFieldOrder(ctx context.Context, p *Plugin, s Sealed) error {
	p.Measure("%d annotations", len(s.Annotations))
	return rawUnseal(ctx, p, "Decrypt with fields in descending order", s, decryptMessage(s.request(p), true))
}

func protoDuplicated(ctx context.Context, p *Plugin, s Sealed) error {
	plaintext := p.Bytes(SeedBytes)
	message := append(bytesField(nil, fieldEncryptPlaintext, p.Bytes(SeedBytes)), encryptMessage(plaintext, p.UID())...)
	must(tryRawEncrypt(ctx, p, "Encrypt with two plaintexts", plaintext, message))
	message = append(bytesField(nil, fieldDecryptCiphertext, p.Bytes(SeedBytes)), decryptMessage(s.request(p), false)...)
	return tryRawDecrypt(ctx, p, "Decrypt with two ciphertexts", message, s.Plaintext)
}

func protoTruncated(ctx context.Context, p *Plugin, s Sealed) error {
	encrypt, decrypt := encryptMessage(p.Bytes(SeedBytes), p.UID()), decryptMessage(s.request(p), false)
	claim := func(message []byte, size uint64) []byte {
		return append(protowire.AppendVarint(protowire.AppendTag(slices.Clone(message), 2, protowire.BytesType), size), "short"...)
	}
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
		data := need(tryRaw(ctx, p, c.what, c.method, c.message))
		if data != nil {
			return found(c.what, "success", "an error")
		}
	}
	return nil
}

func protoWrongTypes(ctx context.Context, p *Plugin) error {
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
		for _, method := range []string{ofEncrypt, ofDecrypt} {
			need(tryRaw(ctx, p, method+" "+c.what, method, c.message))
		}
	}
	return nil
}

func protoInvalidUTF8(ctx context.Context, p *Plugin, s Sealed) error {
	const invalid = "\xff\xfe-\xc3\x28-\xed\xa0\x80"
	plaintext := p.Bytes(SeedBytes)
	must(tryRawEncrypt(ctx, p, "Encrypt with a uid that is no UTF-8", plaintext, encryptMessage(plaintext, invalid)))
	uid, key := s.request(p), s.request(p)
	uid.Uid, key.KeyId = invalid, invalid
	must(tryRawDecrypt(ctx, p, "Decrypt with a uid that is no UTF-8", decryptMessage(uid, false), s.Plaintext))
	return tryRawDecrypt(ctx, p, "Decrypt with a key_id that is no UTF-8", decryptMessage(key, false), s.Plaintext)
}

func protoEmpty(ctx context.Context, p *Plugin) error {
	need(tryRaw(ctx, p, "Encrypt with an empty message", ofEncrypt, []byte{}))
	return tryRawDecrypt(ctx, p, "Decrypt with an empty message", []byte{})
}
