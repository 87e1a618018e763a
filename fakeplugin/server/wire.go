package server

import (
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"
)

// Field numbers of the KMS v2 responses (k8s.io/kms/apis/v2/api.proto).
const (
	statusVersion, statusHealthz, statusKeyID                            = 1, 2, 3
	encryptCiphertext, encryptKeyID, encryptAnnotations                  = 1, 2, 3
	mapKey, mapValue                                    protowire.Number = 1, 2
)

// encodable is resp, or its bytes if it holds a string that protobuf forbids: a plugin in another language, or one
// without a library, can send that.
func encodable(resp any) (out any, unreadable bool) {
	switch r := resp.(type) {
	case *kmsapi.StatusResponse:
		if utf8.ValidString(r.Version) && utf8.ValidString(r.Healthz) && utf8.ValidString(r.KeyId) {
			return resp, false
		}
		var b []byte
		b = text(b, statusVersion, r.Version)
		b = text(b, statusHealthz, r.Healthz)
		return wire(text(b, statusKeyID, r.KeyId)), true
	case *kmsapi.EncryptResponse:
		return encodableEncrypt(r)
	default:
		return resp, false
	}
}

// encodableEncrypt always encodes: a message with a map costs the library ten times as much.
func encodableEncrypt(r *kmsapi.EncryptResponse) (out any, unreadable bool) {
	valid := utf8.ValidString(r.KeyId)
	for key := range r.Annotations {
		valid = valid && utf8.ValidString(key)
	}
	b := text(nil, encryptCiphertext, string(r.Ciphertext))
	b = text(b, encryptKeyID, r.KeyId)
	for key, value := range r.Annotations {
		entry := text(text(nil, mapKey, key), mapValue, string(value))
		b = text(b, encryptAnnotations, string(entry))
	}
	return wire(append(b, r.ProtoReflect().GetUnknown()...)), !valid
}

// text appends a string, bytes or message field; on the wire they look the same.
func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// wire is a response that is already encoded, because no library would encode it.
type wire []byte

// codec is protobuf, except that a wire goes out as it is.
type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if w, ok := v.(wire); ok {
		return mem.BufferSlice{mem.SliceBuffer(w)}, nil
	}
	return c.CodecV2.Marshal(v)
}
