package provider

import (
	"fmt"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/provider"
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

// ControlPlanes is an option: how many API servers there are.
func ControlPlanes(n int) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ControlPlanes = n })
}

// APIServerArgs is an option: further flags of every API server.
func APIServerArgs(args ...string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.APIServerArgs = args })
}

// Progress is an option: it receives one line at a time about what takes more than a moment.
func Progress(to func(string)) support.ClusterOpts {
	return provider.With(func(c *Config) { c.Progress = to })
}
