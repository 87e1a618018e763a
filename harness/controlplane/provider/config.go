package provider

import (
	"fmt"
	"os"

	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/yaml"
)

// Config is what a cluster looks like, and the file of CreateWithConfig.
type Config struct {
	// ControlPlanes is how many API servers there are, cp-1 … cp-n: 1 (default) to 7.
	ControlPlanes int `json:"controlPlanes,omitempty"`
	// APIServerArgs are further flags of each.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// Progress receives one line at a time about what takes more than a moment; nil: silence.
	Progress func(string) `json:"-"`
}

// maxControlPlanes needs 2 GB of memory.
const maxControlPlanes = 7

func (c Config) validate() error {
	if c.ControlPlanes < 1 || c.ControlPlanes > maxControlPlanes {
		return fmt.Errorf("controlPlanes is %d, expected 1 to %d", c.ControlPlanes, maxControlPlanes)
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

// ControlPlanes is an option: how many API servers there are.
func ControlPlanes(n int) support.ClusterOpts {
	return with(func(c *Config) { c.ControlPlanes = n })
}

// APIServerArgs is an option: further flags of every API server.
func APIServerArgs(args ...string) support.ClusterOpts {
	return with(func(c *Config) { c.APIServerArgs = args })
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
