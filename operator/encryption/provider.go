package encryption

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Type of encryption.
type Type = config.Type

// Types.
const (
	Identity = config.Identity // clear text
	AESCBC   = config.AESCBC
	AESGCM   = config.AESGCM
	KMS      = config.KMS // version 2 of the plugin API
)

// Provider is one entry of an encryption configuration. It is comparable.
type Provider struct {
	Type Type
	// KeyID is the sequence number of the encryption-key secret: the plugin's, or the name of the key. Identity has none.
	KeyID string
}

// Clear is the provider that writes clear text and reads it.
func Clear() Provider { return Provider{Type: Identity} }

// Name is how scenarios and histories call it: identity, kms-1, aescbc-2.
func (p Provider) Name() string {
	if p.Type == Identity {
		return string(Identity)
	}
	return strings.ToLower(string(p.Type)) + "-" + p.KeyID
}

// keyForm keeps the separators of storage prefixes out of names.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// Check says what is wrong with a provider.
func (p Provider) Check() error {
	switch {
	case p.Type == Identity && p.KeyID != "":
		return fmt.Errorf("identity with keyID %q, expected none: it has no key", p.KeyID)
	case p.Type == Identity:
		return nil
	case p.Type != KMS && !p.Type.Local():
		return fmt.Errorf("type %q, expected identity, aescbc, aesgcm or KMS", p.Type)
	case !keyForm.MatchString(p.KeyID):
		return fmt.Errorf("%s with keyID %q, expected letters, digits and dashes, at most 63", p.Type, p.KeyID)
	}
	return nil
}
