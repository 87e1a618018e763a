package controlplane

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Provider is one entry of an EncryptionConfiguration. Exactly one of KMS and Key is set; neither is clear text.
type Provider struct {
	KMS *KMSProvider
	Key *KeyProvider
}

// KMSProvider is a KMS v2 plugin.
type KMSProvider struct {
	// KeyID is the sequence number of the encryption-key secret; the provider's name is "kms-{KeyID}".
	KeyID string
	// Socket is the path of the plugin's unix socket, absolute.
	Socket string
	// Timeout of a call; 0 means kube-apiserver's default of 3 s.
	Timeout time.Duration
}

// KeyProvider is a key that the API server itself holds.
type KeyProvider struct {
	// Cipher is AESCBC or AESGCM.
	Cipher Cipher
	// KeyID is the sequence number of the encryption-key secret, and the name of the key in the storage prefix.
	KeyID string
	// Secret is the key: 32 random bytes.
	Secret []byte
}

// Cipher of a KeyProvider.
type Cipher string

// Ciphers.
const (
	AESCBC Cipher = "aescbc"
	AESGCM Cipher = "aesgcm"
)

// KeyBytes is the length of a key. kube-apiserver takes 16 and 24 as well; OpenShift makes 32.
const KeyBytes = 32

func KMS(p KMSProvider) Provider { return Provider{KMS: &p} }

func Key(p KeyProvider) Provider { return Provider{Key: &p} }

// Identity is clear text.
func Identity() Provider { return Provider{} }

// Name tells providers apart: identity, kms-1, aescbc-2.
func (p Provider) Name() string {
	switch {
	case p.KMS != nil:
		return "kms-" + p.KMS.KeyID
	case p.Key != nil:
		return string(p.Key.Cipher) + "-" + p.Key.KeyID
	}
	return "identity"
}

// entry is the provider as kube-apiserver reads it. Each key is an entry of its own: entries of one cipher may stand at different
// places, and the API server tries them one after the other.
func (p Provider) entry() object {
	switch {
	case p.KMS != nil:
		kms := object{"apiVersion": "v2", "name": p.Name(), "endpoint": "unix://" + p.KMS.Socket}
		if p.KMS.Timeout != 0 {
			kms["timeout"] = p.KMS.Timeout.String()
		}
		return object{"kms": kms}
	case p.Key != nil:
		key := object{"name": p.Key.KeyID, "secret": base64.StdEncoding.EncodeToString(p.Key.Secret)}
		return object{string(p.Key.Cipher): object{"keys": []object{key}}}
	}
	return object{"identity": object{}}
}

func (p Provider) check() error {
	switch {
	case p.KMS != nil && p.Key != nil:
		return fmt.Errorf("%s is a plugin and a key, expected one", p.Name())
	case p.KMS != nil:
		return p.KMS.check()
	case p.Key != nil:
		return p.Key.check()
	}
	return nil
}

func (p KMSProvider) check() error {
	switch {
	case p.KeyID == "":
		return fmt.Errorf("the provider with socket %q has no keyID", p.Socket)
	case strings.Contains(p.KeyID, ":"):
		return fmt.Errorf("keyID %q, expected no colon: it ends the name in the storage prefix", p.KeyID)
	case !filepath.IsAbs(p.Socket):
		return fmt.Errorf("keyID %s: the socket %q is not an absolute path", p.KeyID, p.Socket)
	case p.Timeout < 0:
		return fmt.Errorf("keyID %s: the timeout is %v, expected 0 or more", p.KeyID, p.Timeout)
	}
	return nil
}

// check says nothing of the key itself.
func (p KeyProvider) check() error {
	switch {
	case p.Cipher != AESCBC && p.Cipher != AESGCM:
		return fmt.Errorf("cipher %q, expected aescbc or aesgcm", p.Cipher)
	case p.KeyID == "" || strings.Contains(p.KeyID, ":"):
		return fmt.Errorf("%s with keyID %q, expected one without a colon: it ends the name in the storage prefix", p.Cipher, p.KeyID)
	case len(p.Secret) != KeyBytes:
		return fmt.Errorf("%s key %s has %d bytes, expected %d", p.Cipher, p.KeyID, len(p.Secret), KeyBytes)
	}
	return nil
}
