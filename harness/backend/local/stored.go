package local

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// stored says how an object lies in etcd.
type stored struct {
	provider string // name in the storage prefix, or "identity"
	kekID    string
}

// maxStored bounds an answer of etcd: an object is at most 1.5 MiB, a third more in base64.
const maxStored = 4 << 20

// readStored reads a key through etcd's JSON gateway, which needs no client library.
func readStored(ctx context.Context, etcd, key string) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	if err != nil {
		return stored{}, err
	}
	value, err := rangeOne(ctx, "http://"+etcd+"/v3/kv/range", body)
	if err != nil {
		return stored{}, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	s, err := parseStored(value)
	if err != nil {
		return stored{}, fmt.Errorf("%s in etcd: %w", key, err)
	}
	return s, nil
}

func rangeOne(ctx context.Context, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStored))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", response.Status, text)
	}
	var answer struct {
		KVs []struct {
			Value string `json:"value"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.KVs) != 1 {
		return nil, errors.New("it is not there")
	}
	return base64.StdEncoding.DecodeString(answer.KVs[0].Value)
}

// prefixKMS begins every value that KMS v2 has encrypted: k8s:enc:kms:v2:NAME:
const prefixKMS = "k8s:enc:kms:v2:"

// fieldKeyID is key_id in the EncryptedObject of k8s.io/apiserver's kmsv2 envelope.
const fieldKeyID = 2

// parseStored reads the storage prefix and, of an encrypted value, the key_id beside the data.
func parseStored(value []byte) (stored, error) {
	rest, encrypted := bytes.CutPrefix(value, []byte(prefixKMS))
	if !encrypted {
		if bytes.HasPrefix(value, []byte("k8s:enc:")) {
			name, _, _ := strings.Cut(strings.TrimPrefix(string(value[:min(len(value), 64)]), "k8s:enc:"), ":")
			return stored{provider: name}, nil
		}
		return stored{provider: encryptionIdentity}, nil
	}
	name, message, ok := bytes.Cut(rest, []byte(":"))
	if !ok {
		return stored{}, errors.New("the storage prefix has no end")
	}
	kekID, err := bytesField(message, fieldKeyID)
	if err != nil {
		return stored{}, fmt.Errorf("encrypted object: %w", err)
	}
	return stored{string(name), string(kekID)}, nil
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
