package operated

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/encryption"
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

// RollOut is what the harness knows of a file.
type RollOut struct {
	Providers encryption.List   // in order
	Plugins   map[string]string // as in history.Encryption
	Keys      [][]byte          // that no log may have
}

// ReadRollOut reads a file that an operator has made.
func ReadRollOut(text []byte) (RollOut, error) {
	var file rollOutFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return RollOut{}, fmt.Errorf("read the encryption configuration: %w", err)
	}
	if len(file.Resources) != 1 || len(file.Resources[0].Providers) == 0 {
		return RollOut{}, errors.New("read the encryption configuration: expected one list of providers")
	}
	var r RollOut
	for _, p := range file.Resources[0].Providers {
		switch {
		case p.KMS != nil:
			if err := r.addKMS(p.KMS.Name, p.KMS.Endpoint); err != nil {
				return RollOut{}, fmt.Errorf("read the encryption configuration: provider %s: %w", p.KMS.Name, err)
			}
		case p.AESCBC != nil:
			r.addLocal(encryption.AESCBC, p.AESCBC)
		case p.AESGCM != nil:
			r.addLocal(encryption.AESGCM, p.AESGCM)
		default:
			r.Providers = append(r.Providers, encryption.Clear())
		}
	}
	return r, nil
}

func (r *RollOut) addLocal(t encryption.Type, of *rollOutKeys) {
	for _, k := range of.Keys {
		r.Providers, r.Keys = append(r.Providers, encryption.Provider{Type: t, KeyID: k.Name}), append(r.Keys, k.Secret)
	}
}

// addKMS notes the name of the socket where it is not the one that goes with the name of the provider.
func (r *RollOut) addKMS(name, endpoint string) error {
	keyID, ok := strings.CutPrefix(name, (encryption.Provider{Type: encryption.KMS}).Name())
	if !ok {
		return fmt.Errorf("name %q: expected kms-KEYID", name)
	}
	r.Providers = append(r.Providers, encryption.Provider{Type: encryption.KMS, KeyID: keyID})
	socket, err := contract.KeyIDOfSocket(endpoint)
	if err != nil {
		return err
	}
	if socket == keyID {
		return nil
	}
	if r.Plugins == nil {
		r.Plugins = map[string]string{}
	}
	r.Plugins[name] = socket
	return nil
}
