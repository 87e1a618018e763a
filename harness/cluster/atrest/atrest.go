// Package atrest reads how objects lie in etcd: only there, past every API server, can be seen whether they are encrypted, and by which key. The provider
// is in the prefix of a value, and of KMS v2 the key_id in the protobuf after it, so that no key is needed to read them.
package atrest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// Object is how an object lies in etcd.
type Object struct {
	Under
	// Data is what KMS v2 has encrypted, and DEKSource the encrypted source of the DEK beside it.
	Data, DEKSource []byte
}

// Under is by which key an object is encrypted: Provider as kms-1, aescbc-2 or identity, and of KMS v2 the kekID.
type Under struct{ Provider, KEKID string }

// Read reads the object under a key of etcd.
func Read(ctx context.Context, s cluster.Storage, key string) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	value, err := cluster.ReadEtcd(ctx, s, key)
	if err != nil {
		return Object{}, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	o, err := Parse(value)
	if err != nil {
		return Object{}, fmt.Errorf("%s in etcd: %w", key, err)
	}
	return o, nil
}

// prefixKMS begins every value that KMS v2 has encrypted: k8s:enc:kms:v2:NAME:
const prefixKMS = "k8s:enc:kms:v2:"

// localCiphers encrypt with a key of the API server's own: k8s:enc:aescbc:v1:KEY:
func localCiphers() map[string]encryption.Type {
	return map[string]encryption.Type{"k8s:enc:aescbc:v1:": encryption.AESCBC, "k8s:enc:aesgcm:v1:": encryption.AESGCM}
}

// Parse reads a value of etcd. A prefix that nobody knows is an error.
func Parse(value []byte) (Object, error) {
	rest, encrypted := bytes.CutPrefix(value, []byte(prefixKMS))
	if !encrypted {
		return parseLocal(value)
	}
	name, message, ok := bytes.Cut(rest, []byte(":"))
	if !ok {
		return Object{}, errors.New("the storage prefix has no end")
	}
	var o kmstypes.EncryptedObject
	if err := proto.Unmarshal(message, &o); err != nil {
		return Object{}, fmt.Errorf("encrypted object: %w", err)
	}
	provider, ok := operand.KMSProvider(string(name))
	if !ok {
		return Object{}, fmt.Errorf("the storage prefix names the provider %q: expected kms-KEYID or KEYID_RESOURCE", name)
	}
	return Object{Under{provider.Name(), o.KeyID}, o.EncryptedData, o.EncryptedDEKSource}, nil
}

// parseLocal reads a value that no plugin has encrypted.
func parseLocal(value []byte) (Object, error) {
	for prefix, kind := range localCiphers() {
		if rest, ok := bytes.CutPrefix(value, []byte(prefix)); ok {
			name, _, ok := bytes.Cut(rest, []byte(":"))
			if !ok {
				return Object{}, errors.New("the storage prefix has no end")
			}
			return Object{Under: Under{Provider: encryption.Provider{Type: kind, KeyID: string(name)}.Name()}}, nil
		}
	}
	if bytes.HasPrefix(value, []byte("k8s:enc:")) {
		return Object{}, fmt.Errorf("nobody knows its storage prefix %.32q", value)
	}
	return Object{Under: Under{Provider: string(encryption.Identity)}}, nil
}

// Inventory counts every object of some kinds by the key that it is encrypted under, with one example of each. It is an error if one cannot be read.
func Inventory(ctx context.Context, s cluster.Storage, kinds []cluster.Encrypted) ([]history.Under, error) {
	counted := map[Under]*history.Under{}
	for _, k := range kinds {
		if err := cluster.RangeAll(ctx, s, k.Registry, PrefixEnd(k.Registry), func(found []cluster.KeyValue) error { return count(counted, found) }); err != nil {
			return nil, err
		}
	}
	return sorted(counted), nil
}

func count(counted map[Under]*history.Under, found []cluster.KeyValue) error {
	for _, kv := range found {
		s, err := Parse(kv.Value)
		if err != nil {
			return fmt.Errorf("%s in etcd: %w", kv.Key, err)
		}
		if counted[s.Under] == nil {
			counted[s.Under] = &history.Under{Provider: s.Provider, KEKID: s.KEKID, Example: strings.TrimPrefix(string(kv.Key), "/registry/")}
		}
		counted[s.Under].Count++
	}
	return nil
}

func sorted(counted map[Under]*history.Under) []history.Under {
	all := make([]history.Under, 0, len(counted))
	for _, u := range counted {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b history.Under) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.KEKID, b.KEKID))
	})
	return all
}

// PrefixEnd is the first key behind those that begin with a prefix.
func PrefixEnd(prefix string) string {
	end := []byte(prefix)
	end[len(end)-1]++
	return string(end)
}
