package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Parts of a key's Secret, in the shape that OpenShift's encryption controllers give it (library-go, pkg/operator/encryption/secrets).
const (
	// Finalizer keeps a key from being deleted by mistake. An operator removes it before it prunes the key.
	Finalizer = "encryption.apiserver.operator.openshift.io/deletion-protection"
	// ResourcesAnnotation has the resources that were migrated to the key.
	ResourcesAnnotation = "encryption.apiserver.operator.openshift.io/migrated-resources"

	pluginKey = "encryption.apiserver.operator.openshift.io-kms-plugin-config"
)

// placeholder is the key material of types without any: OpenShift writes 16 zeroes.
func placeholder() []byte { return make([]byte, 16) }

// migratedResources is the value of ResourcesAnnotation.
func migratedResources(resources []string) string {
	var all struct {
		Resources []schema.GroupResource `json:"resources"`
	}
	for _, r := range resources {
		all.Resources = append(all.Resources, schema.ParseGroupResource(r))
	}
	text, _ := json.Marshal(all) // texts can always be encoded
	return string(text)
}

// placeholders are providers that stand for identity keys, which have no name of their own: keys of zeroes, last in the list, that nothing is written with.
func (f File) placeholders(r Config) (all []wireProvider) {
	for _, id := range r.Keys {
		if k, _ := Find(f.Keys, id); id != Plain && k.Type == config.Identity {
			all = append(all, wireProvider{AESGCM: &wireKeys{Keys: []wireKey{{Name: fmt.Sprint(id), Secret: placeholder()}}}})
		}
	}
	return all
}

func (p wireProvider) isPlaceholder() bool {
	return p.AESGCM != nil && slices.ContainsFunc(p.AESGCM.Keys, func(k wireKey) bool { return bytes.Equal(k.Secret, placeholder()) })
}

// KeysInFile are the keys that an encryption configuration names, in order. Identity keys are not among them.
func KeysInFile(text []byte) ([]uint64, error) {
	ids, _, err := keysInFile(text)
	return ids, err
}
