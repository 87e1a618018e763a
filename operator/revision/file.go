package revision

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/operator/config"
)

// File is what it takes to write an API server's EncryptionConfiguration.
type File struct {
	// Resources that are encrypted: "secrets".
	Resources []string
	Keys      []Key
	// Material of the keys that have any.
	Material map[uint64][]byte
	// Dir has the sockets.
	Dir string
}

// kmsPrefix begins the names of KMS providers: kms-{keyID}. The name is stored with every object.
const kmsPrefix = "kms-"

// YAML is the file of a revision. Clear text is always there: first if it is written, else last.
func (f File) YAML(r Config) ([]byte, error) {
	var providers, placeholders []apiserverv1.ProviderConfiguration
	plain := false
	for i, id := range r.Keys {
		p, err := f.provider(id)
		if err != nil {
			return nil, err
		}
		if p.Identity == nil || i == 0 {
			providers = append(providers, p)
			plain = plain || p.Identity != nil
		}
		if p.Identity != nil && id != Plain {
			placeholders = append(placeholders, apiserverv1.ProviderConfiguration{AESGCM: oneKey(id, placeholder())})
		}
	}
	if !plain {
		providers = append(providers, identity())
	}
	return yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: f.Resources, Providers: append(providers, placeholders...)}},
	})
}

func identity() apiserverv1.ProviderConfiguration {
	return apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
}

func oneKey(id uint64, material []byte) *apiserverv1.AESConfiguration {
	return &apiserverv1.AESConfiguration{Keys: []apiserverv1.Key{{Name: SocketName(id), Secret: base64.StdEncoding.EncodeToString(material)}}}
}

func (f File) provider(id uint64) (apiserverv1.ProviderConfiguration, error) {
	k, ok := Find(f.Keys, id)
	if !ok {
		return apiserverv1.ProviderConfiguration{}, fmt.Errorf("there is no key %d", id)
	}
	switch k.Type {
	case config.AESCBC:
		return apiserverv1.ProviderConfiguration{AESCBC: oneKey(id, f.Material[id])}, checkMaterial(k.Type, f.Material[id])
	case config.AESGCM:
		return apiserverv1.ProviderConfiguration{AESGCM: oneKey(id, f.Material[id])}, checkMaterial(k.Type, f.Material[id])
	case config.KMS:
		return apiserverv1.ProviderConfiguration{KMS: &apiserverv1.KMSConfiguration{APIVersion: "v2", Name: kmsPrefix + SocketName(id), Endpoint: Socket(f.Dir, id)}}, nil
	}
	return identity(), nil
}

// IsPlaceholder reports whether a provider stands for an identity key, which has no name of its own: a key of zeroes, last in the list, that nothing is
// written with.
func IsPlaceholder(p apiserverv1.ProviderConfiguration) bool {
	return p.AESGCM != nil && slices.ContainsFunc(p.AESGCM.Keys, func(k apiserverv1.Key) bool {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		return err == nil && len(bytes.Trim(secret, "\x00")) == 0
	})
}

// KeysInFile are the keys that a file names, in order, and the place of clear text; -1: it cannot be read.
func KeysInFile(text []byte) (ids []uint64, plainAt int, err error) {
	var file apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, 0, err
	}
	if len(file.Resources) != 1 || len(file.Resources[0].Providers) == 0 {
		return nil, 0, errors.New("expected one list of resources with providers")
	}
	plainAt = -1
	for i, p := range file.Resources[0].Providers {
		if IsPlaceholder(p) {
			continue
		}
		names := namesIn(p)
		if len(names) != 1 {
			return nil, 0, fmt.Errorf("providers[%d]: expected one of aescbc, aesgcm, kms and identity, with one key", i)
		}
		if p.Identity != nil {
			plainAt = i
			continue
		}
		id, err := ParseKeyID(names[0])
		if err != nil {
			return nil, 0, fmt.Errorf("providers[%d]: %w", i, err)
		}
		ids = append(ids, id)
	}
	return ids, plainAt, nil
}

// namesIn are the names of the keys in a provider. That of identity is empty.
func namesIn(p apiserverv1.ProviderConfiguration) (names []string) {
	for _, keys := range []*apiserverv1.AESConfiguration{p.AESCBC, p.AESGCM} {
		if keys != nil {
			for _, k := range keys.Keys {
				names = append(names, k.Name)
			}
		}
	}
	if p.KMS != nil {
		names = append(names, strings.TrimPrefix(p.KMS.Name, kmsPrefix))
	}
	if p.Identity != nil {
		names = append(names, "")
	}
	return names
}
