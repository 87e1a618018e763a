package cluster

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// Encryption is what the API servers are told: providers, the first of which writes, and the keys of those that API servers hold
// themselves.
type Encryption struct {
	Providers encryption.List
	Keys      map[encryption.Provider][]byte
	// File is the configuration that an operator has made, with sockets below contract.SocketDir, and takes the place of both; nil: there is none.
	// Sockets are the names of all the plugins that a node with an operator begins with, and Revision is that of its pod; 0: there are none.
	File     []byte
	Sockets  []string
	Revision int
}

// Plugins is the encryption by plugins alone, the write key first; clear text is read.
func Plugins(keyIDs ...string) Encryption {
	return Encryption{Providers: encryption.Of(encryption.KMS, keyIDs...)}
}

// PluginIDs are the keyIDs of the plugins that an API server with this encryption needs.
func (e Encryption) PluginIDs() []string {
	return append(e.Providers.KeyIDs(encryption.KMS), e.Sockets...)
}

// Config is the configuration of an API server that sees its plugins' sockets where socket says.
func (e Encryption) Config(socket func(keyID string) string) controlplane.Encryption {
	var c controlplane.Encryption
	for _, p := range e.Providers {
		switch {
		case p.Type == encryption.KMS:
			c.Providers = append(c.Providers, controlplane.KMS(controlplane.KMSProvider{KeyID: p.KeyID, Socket: socket(p.KeyID)}))
		case p.Type.Local():
			c.Providers = append(c.Providers, controlplane.Key(controlplane.KeyProvider{Cipher: controlplane.Cipher(p.Type), KeyID: p.KeyID, Secret: e.Keys[p]}))
		default:
			c.Providers = append(c.Providers, controlplane.Identity())
		}
	}
	return c
}

// Encrypted are the objects that an API server encrypts, and into which the data of scenarios go.
type Encrypted struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Registry begins their keys in etcd; it ends with a slash.
	Registry string
	// Field is where the value stands, in base64.
	Field []string
	// Spec is what stands beside it, for objects that need more.
	Spec map[string]any
}

// EncryptedSecrets are those of kube-apiserver.
func EncryptedSecrets() Encrypted {
	return Encrypted{Resource: SecretObjects(), Kind: "Secret", Registry: "/registry/secrets/", Field: []string{"data", DataField}}
}

// EncryptedConfigMaps are encrypted by OpenShift's operators as secrets are.
func EncryptedConfigMaps() Encrypted {
	return Encrypted{Resource: ConfigMapObjects(), Kind: "ConfigMap", Registry: "/registry/configmaps/", Field: []string{"binaryData", DataField}}
}

// Name is that of the resource, as encryption configurations have it.
func (o Encrypted) Name() string {
	if o.Resource.Group == "" {
		return o.Resource.Resource
	}
	return o.Resource.Resource + "." + o.Resource.Group
}

// ObjectName is what the history calls an object of a scenario.
func (o Encrypted) ObjectName(name string) string { return o.Name() + "/" + DataNamespace + "/" + name }

func (o Encrypted) Object(name string, value []byte) *unstructured.Unstructured {
	u := NewObject(o.Resource.GroupVersion().String(), o.Kind, name, nil)
	if o.Spec != nil {
		u.Object["spec"] = maps.Clone(o.Spec)
	}
	u.SetLabels(map[string]string{DataLabel: "true"})
	_ = unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString(value), o.Field...) // nothing is in its way
	return u
}

func (o Encrypted) Value(u *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(u.Object, o.Field...)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// Where the data of scenarios are, and how to find them.
const (
	DataNamespace = "default"
	DataLabel     = "kmsharness.io/data"
	DataField     = "value"
)
