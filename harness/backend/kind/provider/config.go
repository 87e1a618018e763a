package provider

import (
	"fmt"
	"os"

	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
)

// Config is what a cluster looks like, and the file of CreateWithConfig.
type Config struct {
	// ControlPlanes is the number of nodes, cp-1 … cp-n: 1 (default) to kind.MaxControlPlanes.
	ControlPlanes int `json:"controlPlanes,omitempty"`
	// NodeImage of the nodes; empty: the one that can be had, see harness/backend/kind/image.
	NodeImage string `json:"nodeImage,omitempty"`
	// KeyIDs of KMS v2 plugins, the write key first. With any of them every API server's pod has plugins and a reporter, secrets are
	// encrypted, and an aggregator runs. Empty: none of this.
	KeyIDs []string `json:"keyIDs,omitempty"`
	// ReporterImage takes the place of this project's reporter, with ReporterArgs (see kind.Options). Both need KeyIDs.
	ReporterImage string `json:"reporterImage,omitempty"`
	ReporterArgs  string `json:"reporterArgs,omitempty"`
	// Progress receives one line at a time about what takes more than a moment; nil: silence.
	Progress func(string) `json:"-"`
}

func (c Config) validate() error {
	switch {
	case c.ControlPlanes < 1 || c.ControlPlanes > kind.MaxControlPlanes:
		return fmt.Errorf("controlPlanes is %d, expected 1 to %d", c.ControlPlanes, kind.MaxControlPlanes)
	case len(c.KeyIDs) == 0 && (c.ReporterImage != "" || c.ReporterArgs != ""):
		return fmt.Errorf("a reporter without keyIDs, expected both: it has plugins to report of")
	}
	return nil
}

func readConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	c := Config{ControlPlanes: 1}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	if err := c.validate(); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// ControlPlanes is an option: how many nodes there are.
func ControlPlanes(n int) support.ClusterOpts {
	return with(func(c *Config) { c.ControlPlanes = n })
}

// NodeImage is an option: the image of the nodes.
func NodeImage(image string) support.ClusterOpts {
	return with(func(c *Config) { c.NodeImage = image })
}

// Health is an option: KMS v2 plugins of these keyIDs, the write key first, and reporters in every API server's pod, and an
// aggregator.
func Health(keyIDs ...string) support.ClusterOpts {
	return with(func(c *Config) { c.KeyIDs = keyIDs })
}

// Reporter is an option: an image in place of this project's reporter, and a template of its arguments. It needs Health.
func Reporter(image, args string) support.ClusterOpts {
	return with(func(c *Config) { c.ReporterImage, c.ReporterArgs = image, args })
}

// Progress is an option: it receives one line at a time about what takes more than a moment.
func Progress(to func(string)) support.ClusterOpts {
	return with(func(c *Config) { c.Progress = to })
}

// with changes the configuration of our provider, and of no other.
func with(change func(*Config)) support.ClusterOpts {
	return func(cluster support.E2EClusterProvider) {
		if p, ok := cluster.(*Provider); ok {
			change(&p.config)
		}
	}
}
