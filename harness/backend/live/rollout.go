package live

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
)

// rollOutFile is as much of an EncryptionConfiguration as it takes to name its providers.
type rollOutFile struct {
	Resources []struct {
		Providers []struct {
			KMS    *struct{ Name string }
			AESCBC *rollOutKeys
			AESGCM *rollOutKeys
		}
	}
}

type rollOutKeys struct {
	Keys []struct {
		Name   string
		Secret []byte
	}
}

// readRollOut names the providers of a file in order, as histories do, and gives the keys that no log may have.
func readRollOut(text []byte) (providers []string, keys [][]byte, err error) {
	var file rollOutFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, nil, fmt.Errorf("read the encryption configuration: %w", err)
	}
	if len(file.Resources) != 1 || len(file.Resources[0].Providers) == 0 {
		return nil, nil, errors.New("read the encryption configuration: expected one list of providers")
	}
	add := func(t encryption.Type, of *rollOutKeys) {
		for _, k := range of.Keys {
			providers, keys = append(providers, encryption.Provider{Type: t, KeyID: k.Name}.Name()), append(keys, k.Secret)
		}
	}
	for _, p := range file.Resources[0].Providers {
		switch {
		case p.KMS != nil:
			providers = append(providers, p.KMS.Name)
		case p.AESCBC != nil:
			add(encryption.AESCBC, p.AESCBC)
		case p.AESGCM != nil:
			add(encryption.AESGCM, p.AESGCM)
		default:
			providers = append(providers, encryption.Clear().Name())
		}
	}
	return providers, keys, nil
}
