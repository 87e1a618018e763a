package provider

import (
	"fmt"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/provider"
)

// Config is what a cluster looks like, and the file of CreateWithConfig.
type Config struct {
	// ControlPlanes is the number of nodes, cp-1 … cp-n: 1 (default) to kind.MaxControlPlanes.
	ControlPlanes int `json:"controlPlanes,omitempty"`
	// NodeImage of the nodes; empty: the one that can be had, see harness/backend/kind/image.
	NodeImage string `json:"nodeImage,omitempty"`
	// KeyIDs of the KMS v2 plugins in every API server's pod, the write key first.
	KeyIDs []string `json:"keyIDs,omitempty"`
	// ReporterImage takes the place of this project's reporter, with ReporterArgs (see kind.Options).
	ReporterImage string `json:"reporterImage,omitempty"`
	ReporterArgs  string `json:"reporterArgs,omitempty"`
	// Progress receives one line at a time about what takes more than a moment.
	Progress func(string) `json:"-"`
}

func (c Config) validate() error {
	switch {
	case c.ControlPlanes < 1 || c.ControlPlanes > kind.MaxControlPlanes:
		return fmt.Errorf("controlPlanes is %d, expected 1 to %d", c.ControlPlanes, kind.MaxControlPlanes)
	case len(c.KeyIDs) == 0:
		return fmt.Errorf("keyIDs is empty, expected the keyID of a plugin")
	}
	return nil
}

// ControlPlanes is an option: how many nodes there are.
func ControlPlanes(n int) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ControlPlanes = n })
}

// NodeImage is an option: the image of the nodes.
func NodeImage(image string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.NodeImage = image })
}

// Health is an option: KMS v2 plugins of these keyIDs, the write key first.
func Health(keyIDs ...string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.KeyIDs = keyIDs })
}

// Reporter is an option: an image in place of this project's reporter, and a template of its arguments.
func Reporter(image, args string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ReporterImage, c.ReporterArgs = image, args })
}

// Progress is an option: it receives one line at a time about what takes more than a moment.
func Progress(to func(string)) support.ClusterOpts {
	return provider.With(func(c *Config) { c.Progress = to })
}
