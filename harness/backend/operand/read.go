package operand

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Configuration is a configuration that an operator wants of the API server's pods.
type Configuration struct {
	// File is the EncryptionConfiguration.
	File []byte
	// Plugins by keyID, the newest first.
	Plugins []revision.Plugin
}

// ReadConfiguration reads the Secret of a configuration. The error names the Secret and the data key.
func ReadConfiguration(s *corev1.Secret) (Configuration, error) {
	c := Configuration{File: s.Data[configKey]}
	if len(c.File) == 0 {
		return Configuration{}, fmt.Errorf("secret %s/%s: data[%s] is missing: expected an EncryptionConfiguration", s.Namespace, s.Name, configKey)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Data)) {
		text, is := strings.CutPrefix(name, pluginConfigPrefix)
		if !is {
			continue
		}
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Configuration{}, fmt.Errorf("secret %s/%s: data[%s]: expected %sN with the number of a key", s.Namespace, s.Name, name, pluginConfigPrefix)
		}
		plugin, err := readPlugin(s.Data[name])
		if err != nil {
			return Configuration{}, fmt.Errorf("secret %s/%s: data[%s]: %w", s.Namespace, s.Name, name, err)
		}
		c.Plugins = append(c.Plugins, revision.Plugin{KeyID: id, Config: plugin})
	}
	slices.SortFunc(c.Plugins, func(a, b revision.Plugin) int { return int(b.KeyID) - int(a.KeyID) })
	return c, nil
}

// readPlugin reads a plugin's configuration: an APIServer that has nothing but spec.encryption.kms.
func readPlugin(text []byte) (config.Plugin, error) {
	var a configv1.APIServer
	if err := json.Unmarshal(text, &a); err != nil {
		return config.Plugin{}, fmt.Errorf("expected an APIServer object with spec.encryption.kms: %w", err)
	}
	a.Spec.Encryption.Type = configv1.EncryptionTypeKMS
	w, err := config.Read(&a, config.Options{})
	return w.KMS, err
}

// keyIDs are those of the plugins.
func (c Configuration) keyIDs() (ids []uint64) {
	for _, p := range c.Plugins {
		ids = append(ids, p.KeyID)
	}
	return ids
}

// Key is an encryption key of the operator.
type Key struct {
	ID   uint64
	Type config.Type
	// Migrated are the resources that lie under the key.
	Migrated []schema.GroupResource
	// ConvergedKEK and MigratedKEK are as in history.Decision.
	ConvergedKEK, MigratedKEK string
}

// ReadKey reads the Secret of a key.
func ReadKey(s *corev1.Secret) (Key, error) {
	id, err := strconv.ParseUint(s.Name[strings.LastIndex(s.Name, "-")+1:], 10, 64)
	if err != nil {
		return Key{}, fmt.Errorf("secret %s/%s: expected a name that ends with -N, the number of the key", s.Namespace, s.Name)
	}
	k := Key{ID: id, Type: config.Type(s.Annotations[modeAnnotation]), ConvergedKEK: s.Annotations[convergedKEKAnnotation], MigratedKEK: s.Annotations[migratedKEKAnnotation]}
	text := s.Annotations[migratedAnnotation]
	if text == "" {
		return k, nil
	}
	var migrated struct {
		Resources []struct{ Group, Resource string } `json:"resources"`
	}
	if err := json.Unmarshal([]byte(text), &migrated); err != nil {
		return Key{}, fmt.Errorf("secret %s/%s: annotation %s: %w", s.Namespace, s.Name, migratedAnnotation, err)
	}
	for _, r := range migrated.Resources {
		k.Migrated = append(k.Migrated, schema.GroupResource{Group: r.Group, Resource: r.Resource})
	}
	return k, nil
}

// Newest is the key with the highest number; the zero value if there is none.
func Newest(keys []Key) (newest Key) {
	for _, k := range keys {
		if k.ID > newest.ID {
			newest = k
		}
	}
	return newest
}
