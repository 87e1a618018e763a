package operator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Configuration is a configuration that an operator wants of the API server's pods.
type Configuration struct {
	// File is the EncryptionConfiguration.
	File []byte
	// Plugins by keyID, the newest first, with the content of the credentials that are beside them.
	Plugins []revision.Plugin
}

// ReadConfiguration reads the Secret of a configuration. The error names the Secret and the data key.
func ReadConfiguration(s *corev1.Secret) (Configuration, error) {
	c := Configuration{File: s.Data[ConfigKey]}
	if len(c.File) == 0 {
		return Configuration{}, fmt.Errorf("secret %s/%s: data[%s] is missing: expected an EncryptionConfiguration", s.Namespace, s.Name, ConfigKey)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Data)) {
		text, is := strings.CutPrefix(name, PluginConfigPrefix)
		if !is {
			continue
		}
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Configuration{}, fmt.Errorf("secret %s/%s: data[%s]: expected %sN with the number of a key", s.Namespace, s.Name, name, PluginConfigPrefix)
		}
		plugin, err := config.ReadAPIServer(s.Data[name])
		if err != nil {
			return Configuration{}, fmt.Errorf("secret %s/%s: data[%s]: %w", s.Namespace, s.Name, name, err)
		}
		c.Plugins = append(c.Plugins, revision.Plugin{KeyID: id, Config: plugin.WithContent(contents(s.Data, id, plugin))})
	}
	slices.SortFunc(c.Plugins, func(a, b revision.Plugin) int { return int(b.KeyID) - int(a.KeyID) })
	return c, nil
}

func (c Configuration) KeyIDs() (ids []uint64) {
	for _, p := range c.Plugins {
		ids = append(ids, p.KeyID)
	}
	return ids
}

// Of is the plugin of a key.
func (c Configuration) Of(keyID uint64) (of config.Plugin, there bool) {
	return revision.Of(c.Plugins, keyID)
}

// contents are hashes of the credentials that the data of a configuration's Secret have for a key's plugin.
func contents(data map[string][]byte, keyID uint64, p config.Plugin) map[config.Reference]string {
	all := map[config.Reference]string{}
	for _, r := range p.Credentials() {
		prefix, suffix := credentialKey(r, keyID)
		content := map[string][]byte{}
		for name, value := range data {
			if key, of := strings.CutPrefix(name, prefix); of && strings.HasSuffix(key, suffix) {
				content[strings.TrimSuffix(key, suffix)] = value
			}
		}
		if len(content) > 0 {
			all[r] = config.ContentHash(content)
		}
	}
	return all
}

// credentialKey is what the data keys begin and end with that have a plugin's credentials: kms-plugin-secret-NAME_KEY-N. No name has an underscore.
func credentialKey(r config.Reference, id uint64) (prefix, suffix string) {
	return "kms-plugin-" + strings.ToLower(r.Kind) + "-" + r.Name + "_", "-" + strconv.FormatUint(id, 10)
}

// put puts a plugin with its credentials into the data of a configuration's Secret, in place of what it has of the same key.
func put(data map[string][]byte, p revision.Plugin, credentials map[config.Reference]map[string][]byte) (err error) {
	drop(data, p.KeyID)
	if data[PluginConfigPrefix+strconv.FormatUint(p.KeyID, 10)], err = p.Config.APIServer(); err != nil {
		return fmt.Errorf("plugin %d: %w", p.KeyID, err)
	}
	for r, content := range credentials {
		prefix, suffix := credentialKey(r, p.KeyID)
		for key, value := range content {
			data[prefix+key+suffix] = value
		}
	}
	return nil
}

// drop removes what there is of a plugin.
func drop(data map[string][]byte, id uint64) {
	maps.DeleteFunc(data, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "kms-plugin-") && strings.HasSuffix(name, "-"+strconv.FormatUint(id, 10))
	})
}
