// Command fake-kms-plugin is a KMS v2 plugin that misbehaves on command; see package fakeplugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/fakeplugin/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
