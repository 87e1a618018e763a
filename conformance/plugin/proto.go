package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	kmsapi "k8s.io/kms/apis/v2"
)

// Numbers of the fields of the requests (api.proto).
const (
	fieldEncryptPlaintext   = 1
	fieldEncryptUID         = 2
	fieldDecryptCiphertext  = 1
	fieldDecryptUID         = 2
	fieldDecryptKeyID       = 3
	fieldDecryptAnnotations = 4
)

// bytesField appends a field of type bytes, string or message.
func bytesField(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// encryptMessage is an EncryptRequest as kube-apiserver sends it.
func encryptMessage(plaintext []byte, uid string) []byte {
	return bytesField(bytesField(nil, fieldEncryptPlaintext, plaintext), fieldEncryptUID, []byte(uid))
}

// decryptMessage is a DecryptRequest. Reversed, the fields and the annotations come in descending order.
func decryptMessage(q *kmsapi.DecryptRequest, reversed bool) []byte {
	fields := [][]byte{
		bytesField(nil, fieldDecryptCiphertext, q.Ciphertext), bytesField(nil, fieldDecryptUID, []byte(q.Uid)), bytesField(nil, fieldDecryptKeyID, []byte(q.KeyId)),
	}
	for _, key := range sortedKeys(q.Annotations) {
		name, value := bytesField(nil, 1, []byte(key)), bytesField(nil, 2, q.Annotations[key])
		entry := slices.Concat(name, value)
		if reversed {
			entry = slices.Concat(value, name)
		}
		fields = append(fields, bytesField(nil, fieldDecryptAnnotations, entry))
	}
	if reversed {
		slices.Reverse(fields)
	}
	return slices.Concat(fields...)
}

// unsealRaw decrypts the ciphertext in the answer of a raw Encrypt, and compares.
func unsealRaw(ctx context.Context, p *Plugin, what string, plaintext, answer []byte) error {
	var resp kmsapi.EncryptResponse
	if err := proto.Unmarshal(answer, &resp); err != nil {
		return found(what, fmt.Errorf("the answer is no EncryptResponse: %w", err), "an EncryptResponse")
	}
	return p.Unseal(ctx, Sealed{plaintext, &resp}, "Decrypt of the ciphertext of an "+what)
}

// tryRawEncrypt calls Encrypt with bytes that a plugin may refuse. If it answers, the ciphertext must be that of the plaintext.
func tryRawEncrypt(ctx context.Context, p *Plugin, what string, plaintext, request []byte) error {
	data, err := tryRaw(ctx, p, what, ofEncrypt, request)
	if err != nil || data == nil {
		return err
	}
	return unsealRaw(ctx, p, what, plaintext, data)
}

// allowRaw returns a Finding if the answer of a raw Decrypt has none of the allowed plaintexts.
func allowRaw(what string, answer []byte, allowed ...[]byte) error {
	var resp kmsapi.DecryptResponse
	if err := proto.Unmarshal(answer, &resp); err != nil {
		return found(what, fmt.Errorf("the answer is no DecryptResponse: %w", err), "a DecryptResponse")
	}
	return allow(what, resp.Plaintext, allowed)
}

// rawCall is a call with bytes that must be served.
func rawCall(ctx context.Context, p *Plugin, what, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	data, err := p.Raw(ctx, method, request)
	if err != nil {
		return nil, found(what, err, "a response")
	}
	return data, nil
}

// rawUnseal calls Decrypt with bytes that must be served, and compares.
func rawUnseal(ctx context.Context, p *Plugin, what string, s Sealed, request []byte) error {
	data := need(rawCall(ctx, p, what, ofDecrypt, request))
	return allowRaw(what, data, s.Plaintext)
}

// tryRawDecrypt calls Decrypt with bytes that a plugin may refuse. If it answers, the plaintext must be one of the allowed ones.
func tryRawDecrypt(ctx context.Context, p *Plugin, what string, request []byte, allowed ...[]byte) error {
	data, err := tryRaw(ctx, p, what, ofDecrypt, request)
	if err != nil || data == nil {
		return err
	}
	return allowRaw(what, data, allowed...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
