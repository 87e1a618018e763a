package operand

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// RollOut is what the harness knows of a file.
type RollOut struct {
	Providers encryption.List // in order; of secrets, where the file has a list for each resource
	Keys      [][]byte        // that no log may have
	// Placeholders are the numbers of identity keys, the newest first: OpenShift's operators write such a key as an aesgcm provider with an empty key at
	// the end of the list, since identity has no name of its own.
	Placeholders []string
	Resources    []string
}

// readFile reads a file that an operator has made. What no API server knows is ignored.
func readFile(text []byte) (file apiserverv1.EncryptionConfiguration, err error) {
	if err := yaml.Unmarshal(text, &file); err != nil {
		return file, fmt.Errorf("read the encryption configuration: %w", err)
	}
	return file, nil
}

// ReadRollOut reads a file that an operator has made.
func ReadRollOut(text []byte) (r RollOut, err error) {
	file, err := readFile(text)
	if err != nil {
		return r, err
	}
	at := slices.IndexFunc(file.Resources, func(r apiserverv1.ResourceConfiguration) bool { return slices.Contains(r.Resources, "secrets") })
	if at < 0 && len(file.Resources) == 1 {
		at = 0
	}
	if at < 0 || len(file.Resources[at].Providers) == 0 {
		return r, errors.New("read the encryption configuration: expected one list of providers, or one that has the resource secrets")
	}
	for _, p := range file.Resources[at].Providers {
		if err := r.add(p); err != nil {
			return RollOut{}, fmt.Errorf("read the encryption configuration: %w", err)
		}
	}
	for _, list := range file.Resources {
		r.Resources = append(r.Resources, list.Resources...)
	}
	return r, nil
}

// add takes one provider of a configuration that an operator wrote. A placeholder is no provider: it has the number of an identity key.
func (r *RollOut) add(p apiserverv1.ProviderConfiguration) error {
	switch {
	case p.KMS != nil:
		if err := r.addKMS(p.KMS.Name, p.KMS.Endpoint); err != nil {
			return fmt.Errorf("provider %s: %w", p.KMS.Name, err)
		}
	case revision.IsPlaceholder(p):
		r.Placeholders = append(r.Placeholders, p.AESGCM.Keys[0].Name)
	case p.AESCBC != nil:
		return r.addLocal(encryption.AESCBC, p.AESCBC.Keys)
	case p.AESGCM != nil:
		return r.addLocal(encryption.AESGCM, p.AESGCM.Keys)
	default:
		r.Providers = append(r.Providers, encryption.Clear())
	}
	return nil
}

func (r *RollOut) addLocal(t encryption.Type, keys []apiserverv1.Key) error {
	for _, k := range keys {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return fmt.Errorf("key %s: %w", k.Name, err)
		}
		r.Providers, r.Keys = append(r.Providers, encryption.Provider{Type: t, KeyID: k.Name}), append(r.Keys, secret)
	}
	return nil
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

// WritingClearText is a file that an operator has made, with clear text as its first provider: an API server that loads it writes clear text, and reads what
// it read before.
func WritingClearText(text []byte) ([]byte, error) {
	file, err := readFile(text)
	if err != nil {
		return nil, err
	}
	for i, r := range file.Resources {
		at := slices.IndexFunc(r.Providers, func(p apiserverv1.ProviderConfiguration) bool { return p.Identity != nil })
		if at < 0 {
			return nil, errors.New("read the encryption configuration: expected that every list of providers has identity")
		}
		file.Resources[i].Providers = slices.Concat(r.Providers[at:at+1], r.Providers[:at], r.Providers[at+1:])
	}
	if len(file.Resources) == 0 {
		return nil, errors.New("read the encryption configuration: expected resources")
	}
	return yaml.Marshal(file)
}
