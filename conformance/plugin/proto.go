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

// readEncryptResponse and readDecryptResponse read the answer of a raw call.
func readEncryptResponse(what string, data []byte) (*kmsapi.EncryptResponse, error) {
	var resp kmsapi.EncryptResponse
	if err := proto.Unmarshal(data, &resp); err != nil {
		return nil, found(what, fmt.Errorf("the answer is no EncryptResponse: %w", err), "an EncryptResponse")
	}
	return &resp, nil
}

func readDecryptResponse(what string, data []byte) ([]byte, error) {
	var resp kmsapi.DecryptResponse
	if err := proto.Unmarshal(data, &resp); err != nil {
		return nil, found(what, fmt.Errorf("the answer is no DecryptResponse: %w", err), "a DecryptResponse")
	}
	return resp.Plaintext, nil
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
	data, err := rawCall(ctx, p, what, kmsapi.KeyManagementService_Decrypt_FullMethodName, request)
	if err != nil {
		return err
	}
	plaintext, err := readDecryptResponse(what, data)
	if err != nil {
		return err
	}
	return allow(what, plaintext, [][]byte{s.Plaintext})
}

// tryRawDecrypt calls Decrypt with bytes that a plugin may refuse. If it answers, the plaintext must be one of the allowed ones.
func tryRawDecrypt(ctx context.Context, p *Plugin, what string, request []byte, allowed ...[]byte) error {
	data, err := tryRaw(ctx, p, what, kmsapi.KeyManagementService_Decrypt_FullMethodName, request)
	if err != nil || data == nil {
		return err
	}
	plaintext, err := readDecryptResponse(what, data)
	if err != nil {
		return err
	}
	return allow(what, plaintext, allowed)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
