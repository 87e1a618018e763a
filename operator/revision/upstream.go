package revision

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
