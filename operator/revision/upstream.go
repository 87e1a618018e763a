package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Parts of a key's Secret that only OpenShift's shape has.
const (
	// Finalizer keeps a key from being deleted by mistake. An operator removes it before it prunes the key.
	Finalizer = "encryption.apiserver.operator.openshift.io/deletion-protection"
	// ResourcesAnnotation has the resources that were migrated to the key.
	ResourcesAnnotation = "encryption.apiserver.operator.openshift.io/migrated-resources"

	upstreamPluginKey = "encryption.apiserver.operator.openshift.io-kms-plugin-config"
)

// upstream reports whether keys are in OpenShift's shape.
func (c Component) upstream() bool { return c == OpenShiftKubeAPIServer }

// placeholder is the key material of types without any: OpenShift writes 16 zeroes.
func placeholder() []byte { return make([]byte, 16) }

// asUpstream gives the Secret of a new key OpenShift's shape: a finalizer, a placeholder where there is no key material, and the plugin's configuration
// as an APIServer.
func asUpstream(s *corev1.Secret, k Key) (err error) {
	s.Finalizers = []string{Finalizer}
	if len(s.Data[materialKey]) == 0 {
		s.Data[materialKey] = placeholder()
	}
	if k.Type == config.KMS {
		delete(s.Data, pluginKey)
		s.Data[upstreamPluginKey], err = k.Plugin.APIServer()
	}
	return err
}

// fromUpstream are the key material and the plugin's configuration of a Secret in OpenShift's shape.
func fromUpstream(s *corev1.Secret, t config.Type) (material []byte, p config.Plugin, err error) {
	if material = s.Data[materialKey]; bytes.Equal(material, placeholder()) {
		material = nil
	}
	if t == config.KMS {
		if p, err = config.ReadAPIServer(s.Data[upstreamPluginKey]); err != nil {
			err = fmt.Errorf("data[%s]: %w", upstreamPluginKey, err)
		}
	}
	return material, p, err
}

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
