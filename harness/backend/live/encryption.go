package live

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
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

// recordConfigured records what the API servers were told before the scenario began, and have loaded, so that the history tells of all.
func (sw *encryptionSwitch) recordConfigured() {
	for _, n := range sw.e.nodes() {
		sw.recordConfiguredOn(n.Name)
	}
}

// recordConfiguredOn records it of an API server that has begun with what all were told last.
func (sw *encryptionSwitch) recordConfiguredOn(node string) {
	names := sw.current().Providers.Names()
	for _, state := range []string{history.EncryptionConfigured, history.EncryptionLoaded} {
		sw.e.record(&history.Encryption{Node: node, State: state, Providers: names})
	}
}

// newKey is key material that nobody has seen.
func newKey() ([]byte, error) {
	key := make([]byte, controlplane.KeyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
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
	return Encrypted{Resource: secretObjects(), Kind: "Secret", Registry: "/registry/secrets/", Field: []string{"data", dataField}}
}

// encryptedConfigMaps are encrypted by OpenShift's operators as secrets are.
func encryptedConfigMaps() Encrypted {
	return Encrypted{Resource: configMapObjects(), Kind: "ConfigMap", Registry: "/registry/configmaps/", Field: []string{"binaryData", dataField}}
}

// name is that of the resource, as encryption configurations have it.
func (o Encrypted) name() string {
	if o.Resource.Group == "" {
		return o.Resource.Resource
	}
	return o.Resource.Resource + "." + o.Resource.Group
}

// objectName is what the history calls an object of a scenario.
func (o Encrypted) objectName(name string) string { return o.name() + "/" + DataNamespace + "/" + name }

func (o Encrypted) object(name string, value []byte) *unstructured.Unstructured {
	u := newObject(o.Resource.GroupVersion().String(), o.Kind, name, nil)
	if o.Spec != nil {
		u.Object["spec"] = maps.Clone(o.Spec)
	}
	u.SetLabels(map[string]string{dataLabel: "true"})
	_ = unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString(value), o.Field...) // nothing is in its way
	return u
}

func (o Encrypted) value(u *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(u.Object, o.Field...)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// clearText leaves a plane with an operator, which is ended, in which everything can be read without a key: whatever it has come to, its API
// servers write clear text from now on, read what they read before, and every object is written anew.
func (sw *encryptionSwitch) clearText(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := sw.e.procs.reachable(sw.e.nodes(), ""); err != nil {
		return err
	}
	err := sw.eachNode(func(n *Node) error {
		if err := n.Server.Start(ctx); err != nil { // the steps may have left it away
			return err
		}
		text, err := os.ReadFile(n.EncryptionFile)
		if err != nil {
			return err
		}
		file, err := operand.WritingClearText(text)
		if err != nil {
			return err
		}
		hash, err := n.Server.RollOut(file)
		if err != nil {
			return err
		}
		return n.awaitConfig(ctx, func() string { return hash }, func(string) { hash = "" })
	})
	if err != nil {
		return fmt.Errorf("leave clear text: %w", err)
	}
	return migrator{sw.e}.rewriteAll(ctx, sw.e.Encrypted.Resource, inHaste())
}
