package operand

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// rollOutFile is as much of an EncryptionConfiguration as it takes to name its providers.
type rollOutFile struct {
	Resources []rollOutList
}

type rollOutList struct {
	Resources []string
	Providers []rollOutProvider
}

type rollOutProvider struct {
	KMS    *struct{ Name, Endpoint string }
	AESCBC *rollOutKeys
	AESGCM *rollOutKeys
}

type rollOutKeys struct {
	Keys []struct {
		Name   string
		Secret []byte
	}
}

// RollOut is what the harness knows of a file.
type RollOut struct {
	Providers encryption.List // in order; of secrets, where the file has a list for each resource
	Keys      [][]byte        // that no log may have
	// Placeholders are the numbers of identity keys, the newest first: OpenShift's operators write such a key as an aesgcm provider with an empty key at
	// the end of the list, since identity has no name of its own.
	Placeholders []string
	Resources    []string
}

// ReadRollOut reads a file that an operator has made.
func ReadRollOut(text []byte) (RollOut, error) {
	r, err := readRollOut(text)
	if err != nil {
		return RollOut{}, fmt.Errorf("read the encryption configuration: %w", err)
	}
	return r, nil
}

func readRollOut(text []byte) (RollOut, error) {
	var file rollOutFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return RollOut{}, err
	}
	at := slices.IndexFunc(file.Resources, func(r rollOutList) bool { return slices.Contains(r.Resources, "secrets") })
	if at < 0 && len(file.Resources) == 1 {
		at = 0
	}
	if at < 0 || len(file.Resources[at].Providers) == 0 {
		return RollOut{}, errors.New("expected one list of providers, or one that has the resource secrets")
	}
	var r RollOut
	for _, p := range file.Resources[at].Providers {
		if err := r.add(p); err != nil {
			return RollOut{}, err
		}
	}
	for _, list := range file.Resources {
		r.Resources = append(r.Resources, list.Resources...)
	}
	return r, nil
}

func (r *RollOut) add(p rollOutProvider) error {
	switch {
	case p.KMS != nil:
		if err := r.addKMS(p.KMS.Name, p.KMS.Endpoint); err != nil {
			return fmt.Errorf("provider %s: %w", p.KMS.Name, err)
		}
	case p.AESCBC != nil:
		r.addLocal(encryption.AESCBC, p.AESCBC)
	case p.AESGCM != nil:
		r.addLocal(encryption.AESGCM, p.AESGCM)
	default:
		r.Providers = append(r.Providers, encryption.Clear())
	}
	return nil
}

func (r *RollOut) addLocal(t encryption.Type, of *rollOutKeys) {
	for _, k := range of.Keys {
		if t == encryption.AESGCM && bytes.Count(k.Secret, []byte{0}) == len(k.Secret) {
			r.Placeholders = append(r.Placeholders, k.Name)
			continue
		}
		r.Providers, r.Keys = append(r.Providers, encryption.Provider{Type: t, KeyID: k.Name}), append(r.Keys, k.Secret)
	}
}

// Writer is the number of the key that encrypts: an identity key's, where there is one; empty: clear text without a key.
func (r RollOut) Writer() string {
	if w := r.Providers.Writer(); w.Type != encryption.Identity {
		return w.KeyID
	}
	if len(r.Placeholders) > 0 {
		return r.Placeholders[0]
	}
	return ""
}

// Reads reports whether the file has a key, by its number.
func (r RollOut) Reads(keyID string) bool {
	return slices.Contains(r.Placeholders, keyID) ||
		slices.ContainsFunc(r.Providers, func(p encryption.Provider) bool { return p.KeyID == keyID })
}

// KMSProvider is the provider that an EncryptionConfiguration names: kms-KEYID, as this project's operator writes it, or KEYID_RESOURCE, as OpenShift's do.
// Storage prefixes have the same names.
func KMSProvider(name string) (encryption.Provider, bool) {
	keyID, ok := strings.CutPrefix(name, (encryption.Provider{Type: encryption.KMS}).Name())
	if !ok {
		keyID, _, ok = strings.Cut(name, "_")
	}
	return encryption.Provider{Type: encryption.KMS, KeyID: keyID}, ok
}

// addKMS notes a provider, whose plugin has the socket that goes with its name.
func (r *RollOut) addKMS(name, endpoint string) error {
	provider, ok := KMSProvider(name)
	if !ok {
		return fmt.Errorf("name %q: expected kms-KEYID or KEYID_RESOURCE", name)
	}
	r.Providers = append(r.Providers, provider)
	socket, err := contract.KeyIDOfSocket(endpoint)
	if err == nil && socket != provider.KeyID {
		err = fmt.Errorf("endpoint %q: expected the socket of keyID %s", endpoint, provider.KeyID)
	}
	return err
}
