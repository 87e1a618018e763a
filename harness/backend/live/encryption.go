package live

import (
	"crypto/rand"
	"fmt"

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
	if sw.e.traits.Foreign() { // they were configured with something, but not by this harness
		return
	}
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
