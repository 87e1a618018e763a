package virtualcluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	apiserverinternal "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// SetEncryption replaces the EncryptionConfiguration of API servers; without names, of all. Those that run follow as kube-apiserver does: they read the
// file once a minute, and the configuration comes into force when all its plugins are healthy. An API server that starts has it at once. Objects that
// are stored stay as they are until they are written. Sockets of KMS plugins are below Dir. A configuration that kube-apiserver would not accept
// is an error, and changes nothing.
func (c *Cluster) SetEncryption(e *apiserverconfig.EncryptionConfiguration, apiServers ...string) error {
	text, err := encode(e)
	if err != nil {
		return fmt.Errorf("encryption configuration: %w", err)
	}
	if len(apiServers) == 0 {
		apiServers = slices.Sorted(maps.Keys(c.servers))
	}
	var all []*apiServer
	for _, name := range apiServers {
		s, err := c.server(name)
		if err != nil {
			return fmt.Errorf("encryption configuration: %w", err)
		}
		all = append(all, s)
	}
	for _, s := range all {
		if err := atomicfile.Write(s.encryptionFile(), text, 0o600); err != nil {
			return fmt.Errorf("encryption configuration of %s: %w", s.name, err)
		}
	}
	return nil
}

// encode is the text of a configuration that is valid.
func encode(e *apiserverconfig.EncryptionConfiguration) ([]byte, error) {
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
