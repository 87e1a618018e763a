package virtual

import (
	"context"
	"io"

	aggregator "github.com/kmsharness/kmsharness/aggregator/command"
	plugin "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/internal/host"
	operator "github.com/kmsharness/kmsharness/operator/command"
	"github.com/kmsharness/kmsharness/reporter"
)

// Programs are this project's, by name. They are the same that run as processes.
func Programs() map[string]Main {
	return map[string]Main{
		cluster.PluginProgram: func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
			return plugin.Main(ctx, h, args, stdout, stderr)
		},
		"kms-health-reporter": reporter.Main,
		"kms-health-aggregator": func(ctx context.Context, h host.Host, args []string, _, stderr io.Writer) int {
			return aggregator.Main(ctx, h, args, stderr)
		},
		"encryption-operator": func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
			return operator.Main(ctx, h, args, stdout, stderr)
		},
	}
}
