package config

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/kmsharness/kmsharness/contract"
)

// Type of the encryption, as the API spells it.
type Type string

// Types of encryption.
const (
	Identity Type = "identity"
	AESCBC   Type = "aescbc"
	AESGCM   Type = "aesgcm"
	KMS      Type = "KMS"
)

// Local reports whether API servers have the key themselves.
func (t Type) Local() bool { return t == AESCBC || t == AESGCM }

// Wanted is the encryption that an APIServer configuration asks for. Two that are equal ask for the same.
type Wanted struct {
	Type Type
	// KMS is the plugin's configuration; the zero value for other types.
	KMS Plugin
}

// Options are what the cluster's configuration leaves to the operator.
type Options struct {
	// BeforeKMS: the operator is of a release that does not know KMS yet.
	BeforeKMS bool
}

// Knows says whether an operator knows a type of encryption.
func (o Options) Knows(t Type) bool { return t != KMS || !o.BeforeKMS }

func (o Options) types() string {
	if o.BeforeKMS {
		return "identity, aescbc or aesgcm: this release of the operator does not know KMS"
	}
	return "identity, aescbc, aesgcm or KMS"
}

// Read is the encryption that is wanted. Where the configuration is invalid, the error is one line for the administrator, and what is
// in force stays in force: the zero Wanted must not be used.
func Read(a *configv1.APIServer, o Options) (Wanted, error) {
	if a == nil {
		return Wanted{}, fmt.Errorf("spec.encryption: there is no APIServer configuration")
	}
	if !o.Knows(Type(a.Spec.Encryption.Type)) {
		return Wanted{}, unknown(a, o)
	}
	switch t := Type(a.Spec.Encryption.Type); t {
	case "": // unset means identity today; the API reserves the right to mean something else
		return plain(Identity, a)
	case Identity, AESCBC, AESGCM:
		return plain(t, a)
	case KMS:
		plugin, err := readPlugin(a)
		if err != nil {
			return Wanted{}, errors.New(contract.SafeText(err.Error(), contract.MaxDetailChars)) // it may quote what somebody wrote
		}
		return Wanted{Type: KMS, KMS: plugin}, nil
	default:
		return Wanted{}, unknown(a, o)
	}
}

func unknown(a *configv1.APIServer, o Options) error {
	return fmt.Errorf("spec.encryption.type: %q is unknown: expected %s", a.Spec.Encryption.Type, o.types())
}

// plain is a type without further settings.
func plain(t Type, a *configv1.APIServer) (Wanted, error) {
	if a.Spec.Encryption.KMS != (configv1.KMSPluginConfig{}) {
		return Wanted{}, fmt.Errorf("spec.encryption.kms: expected nothing with type %s, got provider %q", t, a.Spec.Encryption.KMS.Type)
	}
	return Wanted{Type: t}, nil
}
