package live

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
)

// rollOutFile is as much of an EncryptionConfiguration as it takes to name its providers.
type rollOutFile struct {
	Resources []struct {
		Providers []struct {
			KMS    *struct{ Name, Endpoint string }
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

// rollOut is what the harness knows of a file.
type rollOut struct {
	providers []string          // in order, as histories name them
	plugins   map[string]string // as in history.Encryption
	keys      [][]byte          // that no log may have
}

// readRollOut reads a file that an operator has made.
func readRollOut(text []byte) (rollOut, error) {
	var file rollOutFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return rollOut{}, fmt.Errorf("read the encryption configuration: %w", err)
	}
	if len(file.Resources) != 1 || len(file.Resources[0].Providers) == 0 {
		return rollOut{}, errors.New("read the encryption configuration: expected one list of providers")
	}
	var r rollOut
	for _, p := range file.Resources[0].Providers {
		switch {
		case p.KMS != nil:
			if err := r.addKMS(p.KMS.Name, p.KMS.Endpoint); err != nil {
				return rollOut{}, fmt.Errorf("read the encryption configuration: provider %s: %w", p.KMS.Name, err)
			}
		case p.AESCBC != nil:
			r.addLocal(encryption.AESCBC, p.AESCBC)
		case p.AESGCM != nil:
			r.addLocal(encryption.AESGCM, p.AESGCM)
		default:
			r.providers = append(r.providers, encryption.Clear().Name())
		}
	}
	return r, nil
}

func (r *rollOut) addLocal(t encryption.Type, of *rollOutKeys) {
	for _, k := range of.Keys {
		r.providers, r.keys = append(r.providers, encryption.Provider{Type: t, KeyID: k.Name}.Name()), append(r.keys, k.Secret)
	}
}

// addKMS notes the name of the socket where it is not the one that goes with the name of the provider.
func (r *rollOut) addKMS(name, endpoint string) error {
	r.providers = append(r.providers, name)
	socket, err := contract.KeyIDOfSocket(endpoint)
	if err != nil {
		return err
	}
	if (encryption.Provider{Type: encryption.KMS, KeyID: socket}).Name() == name {
		return nil
	}
	if r.plugins == nil {
		r.plugins = map[string]string{}
	}
	r.plugins[name] = socket
	return nil
}
