package virtualcluster

import (
	"fmt"
	"maps"
	"slices"

	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// SetEncryption replaces the EncryptionConfiguration of API servers; without names, of all. Those that run follow as kube-apiserver does: they read the
// file once a minute, and the configuration comes into force when all its plugins are healthy. An API server that starts has it at once. Objects that
// are stored stay as they are until they are written. Sockets of KMS plugins are below Dir. A configuration that kube-apiserver would not accept
// is an error, and changes nothing.
func (c *Cluster) SetEncryption(e *apiserverconfig.EncryptionConfiguration, apiServers ...string) error {
	text, err := controlplane.EncryptionYAML(e)
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
