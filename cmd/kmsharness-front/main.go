// Command kmsharness-front adds the Alt-Svc field to the responses of an API server; see package front.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/altsvc/advertise/front"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/version"
)

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if version.Asked("kmsharness-front", args, stdout) {
		return 0
	}
	return front.Main(ctx, args, stdout, stderr)
}
