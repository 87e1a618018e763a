package revision

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Component is one of the three API servers, by OpenShift's name. Each has keys and revisions of its own.
type Component string

// Components.
const (
	KubeAPIServer      Component = "openshift-kube-apiserver"
	OpenShiftAPIServer Component = "openshift-apiserver"
	OAuthAPIServer     Component = "openshift-oauth-apiserver"
)

// Plain is the keyID of what was never encrypted: nothing has it as a key.
const Plain uint64 = 0

// Key is an encryption key. Those of the types identity and KMS have no key material: they are places in the order of keys.
type Key struct {
	// ID is a sequence number from 1, never used twice.
	ID   uint64
	Type config.Type
	// Plugin of a KMS key.
	Plugin config.Plugin
	// Reason why it was made, for people.
	Reason string
	// Migrated: every object has been written anew since all API servers write with this key.
	Migrated bool
	// KEK that all objects are encrypted under, as the plugins report it; empty while that is not known. Of KMS keys.
	KEK string
	// Initial is the kekID of the pre-flight check. As long as the plugins have never reported another one, no API server can have taken
	// another one up, and there is nothing to wait for.
	Initial string
	// Converged is the kekID that all nodes report, and since when; empty while they do not agree.
	Converged Convergence
}

// Convergence is since when all nodes have reported the same kekID.
type Convergence struct {
	KEK   string
	Since time.Time
}

// Wanted is the encryption that the key is for.
func (k Key) Wanted() config.Wanted { return config.Wanted{Type: k.Type, KMS: k.Plugin} }

// Config is a revision of an API server's encryption configuration.
type Config struct {
	Revision int
	// Keys by ID, the one that writes first; Plain for clear text. Clear text can always be read.
	Keys []uint64
}

// Writes is the key that encrypts.
func (c Config) Writes() uint64 {
	if len(c.Keys) == 0 {
		return Plain
	}
	return c.Keys[0]
}

// Reads says whether objects of a key can be read.
func (c Config) Reads(id uint64) bool { return id == Plain || slices.Contains(c.Keys, id) }

// PluginConfig is a revision of the plugins of an API server's pods. It has all plugins that a pod needs, and so is enough without those
// before it.
type PluginConfig struct {
	Revision int
	Plugins  []Plugin // that of the key that writes first
}

// Plugin of a key.
type Plugin struct {
	KeyID  uint64
	Config config.Plugin
}

// Has says whether there is a plugin of a key.
func (p PluginConfig) Has(id uint64) bool {
	_, there := p.Of(id)
	return there
}

func (p PluginConfig) Of(id uint64) (of config.Plugin, there bool) { return Of(p.Plugins, id) }

// Of is the plugin of a key.
func Of(plugins []Plugin, id uint64) (of config.Plugin, there bool) {
	i := slices.IndexFunc(plugins, func(one Plugin) bool { return one.KeyID == id })
	if i < 0 {
		return config.Plugin{}, false
	}
	return plugins[i].Config, true
}

func (c Config) revision() int       { return c.Revision }
func (p PluginConfig) revision() int { return p.Revision }
