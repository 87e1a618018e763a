// Command mutant-plugin serves a KMS v2 plugin that is wrong on purpose; see package kmsplugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return kmsplugin.Main(ctx, os.Args[1:], os.Stderr)
}
