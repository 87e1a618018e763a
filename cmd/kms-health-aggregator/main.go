// Command kms-health-aggregator rolls up the health reports of KMS v2 plugins into conditions of their operator.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/aggregator/command"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
)

func main() {
	entry.Run(func(ctx context.Context, args []string, _, stderr io.Writer) int {
		return command.Main(ctx, host.Host{}, args, stderr)
	})
}
