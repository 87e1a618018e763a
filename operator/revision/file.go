package revision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// The wire form, apiserver.config.k8s.io/v1.
type wireFile struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Resources  []wireResource `json:"resources"`
}

type wireResource struct {
	Resources []string       `json:"resources"`
	Providers []wireProvider `json:"providers"`
}

type wireProvider struct {
	AESCBC   *wireKeys `json:"aescbc,omitempty"`
	AESGCM   *wireKeys `json:"aesgcm,omitempty"`
	KMS      *wireKMS  `json:"kms,omitempty"`
	Identity *struct{} `json:"identity,omitempty"`
}

type wireKeys struct {
	Keys []wireKey `json:"keys"`
}

type wireKey struct {
	Name   string `json:"name"`
	Secret []byte `json:"secret"` // base64 in JSON
}

type wireKMS struct {
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	Endpoint   string `json:"endpoint"`
	Timeout    string `json:"timeout,omitempty"`
}

// kmsPrefix begins the names of KMS providers: kms-{keyID}. The name is stored with every object.
const kmsPrefix = "kms-"

// YAML is the file of a revision. Clear text is always there: first if it is written, else last.
func (f File) YAML(r Config) ([]byte, error) {
	var providers []wireProvider
	for i, id := range r.Keys {
		p, err := f.provider(id)
		if err != nil {
			return nil, err
		}
		if p.Identity == nil || i == 0 {
			providers = append(providers, p)
		}
	}
	if !slices.ContainsFunc(providers, func(p wireProvider) bool { return p.Identity != nil }) {
		providers = append(providers, wireProvider{Identity: &struct{}{}})
	}
	providers = append(providers, f.placeholders(r)...)
	return yaml.Marshal(wireFile{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration",
		Resources: []wireResource{{Resources: f.Resources, Providers: providers}}})
}

func (f File) provider(id uint64) (wireProvider, error) {
	k, ok := Find(f.Keys, id)
	if !ok {
		return wireProvider{}, fmt.Errorf("there is no key %d", id)
	}
	name := fmt.Sprint(id)
	keys := &wireKeys{Keys: []wireKey{{Name: name, Secret: f.Material[id]}}}
	switch k.Type {
	case config.AESCBC:
		return wireProvider{AESCBC: keys}, checkMaterial(k.Type, f.Material[id])
	case config.AESGCM:
		return wireProvider{AESGCM: keys}, checkMaterial(k.Type, f.Material[id])
	case config.KMS:
		return wireProvider{KMS: &wireKMS{APIVersion: "v2", Name: kmsPrefix + name, Endpoint: Socket(f.Dir, id)}}, nil
	}
	return wireProvider{Identity: &struct{}{}}, nil
}

// keysInFile are the keys that a file names, in order, and the place of clear text; -1 if it cannot be read.
func keysInFile(text []byte) (ids []uint64, plainAt int, err error) {
	var file wireFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, 0, err
	}
	if len(file.Resources) != 1 || len(file.Resources[0].Providers) == 0 {
		return nil, 0, errors.New("expected one list of resources with providers")
	}
	plainAt = -1
	for i, p := range file.Resources[0].Providers {
		if p.isPlaceholder() {
			continue
		}
		name, ok := p.name()
		if !ok {
			return nil, 0, fmt.Errorf("providers[%d]: expected one of aescbc, aesgcm, kms and identity, with one key", i)
		}
		if p.Identity != nil {
			plainAt = i
			continue
		}
		id, err := ParseKeyID(name)
		if err != nil {
			return nil, 0, fmt.Errorf("providers[%d]: %w", i, err)
		}
		ids = append(ids, id)
	}
	return ids, plainAt, nil
}

// name of the key in a provider, if it is one provider with one key.
func (p wireProvider) name() (name string, ok bool) {
	count := 0
	for _, keys := range []*wireKeys{p.AESCBC, p.AESGCM} {
		if keys != nil && len(keys.Keys) == 1 {
			name, count = keys.Keys[0].Name, count+1
		}
	}
	if p.KMS != nil {
		name, count = strings.TrimPrefix(p.KMS.Name, kmsPrefix), count+1
	}
	if p.Identity != nil {
		count++
	}
	return name, count == 1
}
