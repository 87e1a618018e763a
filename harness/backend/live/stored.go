package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// stored says how an object lies in etcd.
type stored struct {
	under
	data, dekSource []byte // of KMS v2: what is encrypted, and the encrypted DEK source beside it
}

// under is by which key it is encrypted.
type under struct {
	provider string // kms-1, aescbc-2, identity …
	kekID    string
}

// stored reads how the object under a key lies in etcd.
func (ds *dataset) stored(ctx context.Context, key string) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	value, err := ds.e.controlPlane.ReadEtcd(ctx, key)
	if err != nil {
		return stored{}, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	s, err := parseStored(value)
	if err != nil {
		return stored{}, fmt.Errorf("%s in etcd: %w", key, err)
	}
	return s, nil
}

// prefixKMS begins every value that KMS v2 has encrypted: k8s:enc:kms:v2:NAME:
const prefixKMS = "k8s:enc:kms:v2:"

// Fields of the EncryptedObject of k8s.io/apiserver's kmsv2 envelope.
const (
	fieldData      = 1
	fieldKeyID     = 2
	fieldDEKSource = 3
)

// localCiphers encrypt with a key of the API server's own: k8s:enc:aescbc:v1:KEY:
func localCiphers() map[string]encryption.Type {
	return map[string]encryption.Type{"k8s:enc:aescbc:v1:": encryption.AESCBC, "k8s:enc:aesgcm:v1:": encryption.AESGCM}
}

// parseStored reads the storage prefix and, of an encrypted value, the key_id beside the data.
func parseStored(value []byte) (stored, error) {
	rest, encrypted := bytes.CutPrefix(value, []byte(prefixKMS))
	if !encrypted {
		return parseLocal(value)
	}
	name, message, ok := bytes.Cut(rest, []byte(":"))
	if !ok {
		return stored{}, errors.New("the storage prefix has no end")
	}
	kekID, err := bytesField(message, fieldKeyID)
	if err != nil {
		return stored{}, fmt.Errorf("encrypted object: %w", err)
	}
	source, err := bytesField(message, fieldDEKSource)
	if err != nil {
		return stored{}, fmt.Errorf("encrypted object: %w", err)
	}
	data, err := bytesField(message, fieldData)
	if err != nil {
		return stored{}, fmt.Errorf("encrypted object: %w", err)
	}
	provider, ok := operated.KMSProvider(string(name))
	if !ok {
		return stored{}, fmt.Errorf("the storage prefix names the provider %q: expected kms-KEYID or KEYID_RESOURCE", name)
	}
	return stored{under{provider.Name(), string(kekID)}, data, source}, nil
}

// parseLocal reads the storage prefix of a value that no plugin has encrypted.
func parseLocal(value []byte) (stored, error) {
	for prefix, kind := range localCiphers() {
		if rest, ok := bytes.CutPrefix(value, []byte(prefix)); ok {
			name, _, ok := bytes.Cut(rest, []byte(":"))
			if !ok {
				return stored{}, errors.New("the storage prefix has no end")
			}
			return stored{under: under{provider: encryption.Provider{Type: kind, KeyID: string(name)}.Name()}}, nil
		}
	}
	if bytes.HasPrefix(value, []byte("k8s:enc:")) {
		return stored{}, fmt.Errorf("nobody knows its storage prefix %.32q", value)
	}
	return stored{under: under{provider: string(encryption.Identity)}}, nil
}

// bytesField finds a length-delimited field of a protobuf message.
func bytesField(message []byte, want protowire.Number) ([]byte, error) {
	var found []byte
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if number == want && kind == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(message)
		}
		message = message[size:]
	}
	return found, nil
}
