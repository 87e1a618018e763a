package controlplane

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime"
	apiserverinternal "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// Encryption is what an API server's EncryptionConfiguration says.
type Encryption struct {
	// Resources that are encrypted; empty means secrets.
	Resources []string
	// Providers: the first writes, all of them read. Without any, clear text is written.
	Providers []Provider
}

// Provider is one entry of an EncryptionConfiguration.
type Provider = apiserverconfig.ProviderConfiguration

// KMSProvider is a KMS v2 plugin.
type KMSProvider struct {
	// KeyID is the sequence number of the encryption-key secret; the provider's name is "kms-{KeyID}".
	KeyID string
	// Socket is the path of the plugin's unix socket, absolute.
	Socket string
}

// KeyProvider is a key that the API server itself holds.
type KeyProvider struct {
	Cipher Cipher
	// KeyID is the sequence number of the encryption-key secret, and the name of the key in the storage prefix.
	KeyID string
	// Secret is the key: KeyBytes random bytes.
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

// KMS is the entry of a plugin.
func KMS(p KMSProvider) Provider {
	return Provider{KMS: &apiserverconfig.KMSConfiguration{APIVersion: "v2", Name: "kms-" + p.KeyID, Endpoint: "unix://" + p.Socket}}
}

// Key is the entry of one key. Entries of one cipher may stand at different places, and the API server tries them one after the other.
func Key(p KeyProvider) Provider {
	aes := &apiserverconfig.AESConfiguration{Keys: []apiserverconfig.Key{{Name: p.KeyID, Secret: base64.StdEncoding.EncodeToString(p.Secret)}}}
	if p.Cipher == AESGCM {
		return Provider{AESGCM: aes}
	}
	return Provider{AESCBC: aes}
}

// Identity is the entry of clear text.
func Identity() Provider { return Provider{Identity: &apiserverconfig.IdentityConfiguration{}} }

// YAML is the EncryptionConfiguration (apiserver.config.k8s.io/v1).
func (e Encryption) YAML() ([]byte, error) {
	resource := apiserverconfig.ResourceConfiguration{Resources: e.Resources, Providers: e.Providers}
	if len(resource.Resources) == 0 {
		resource.Resources = []string{"secrets"}
	}
	if len(resource.Providers) == 0 {
		resource.Providers = []Provider{Identity()}
	}
	return EncryptionYAML(&apiserverconfig.EncryptionConfiguration{Resources: []apiserverconfig.ResourceConfiguration{resource}})
}

// EncryptionYAML is the text of a configuration that is valid as kube-apiserver sees it: a file that it rejects is one that a running API server
// ignores, and one that is started with does not start.
func EncryptionYAML(e *apiserverconfig.EncryptionConfiguration) ([]byte, error) {
	e = e.DeepCopy()
	e.SetGroupVersionKind(apiserverconfig.SchemeGroupVersion.WithKind("EncryptionConfiguration"))
	text, err := yaml.Marshal(e)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(e)
	var internal apiserverinternal.EncryptionConfiguration
	if err := scheme.Convert(e, &internal, nil); err != nil {
		return nil, err
	}
	return text, validation.ValidateEncryptionConfiguration(&internal, true).ToAggregate()
}
