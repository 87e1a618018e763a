// Command encryption-operator is this project's encryption operator (package operator) for API servers of OpenShift.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator/command"
)

func main() {
	entry.Run(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return command.Main(ctx, host.Host{}, args, stdout, stderr)
	})
}
