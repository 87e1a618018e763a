// Command fake-kms-plugin is a KMS v2 plugin that misbehaves on command; see package fakeplugin.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
)

func main() {
	entry.Run(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return cli.Main(ctx, host.Host{}, args, stdout, stderr)
	})
}
