// Command mutant-plugin serves a KMS v2 plugin that is wrong on purpose; see package kmsplugin.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
)

func main() {
	entry.Run(func(ctx context.Context, args []string, _, stderr io.Writer) int {
		return kmsplugin.Main(ctx, args, stderr)
	})
}
