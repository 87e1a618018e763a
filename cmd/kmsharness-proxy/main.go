// Command kmsharness-proxy passes TCP connections on with a fault; see package proxy.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/harness/netfault/proxy"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/version"
)

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if version.Asked("kmsharness-proxy", args, stdout) {
		return 0
	}
	return proxy.Main(ctx, args, stdout, stderr)
}
