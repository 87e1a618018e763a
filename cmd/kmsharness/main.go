// Command kmsharness tests KMS v2 encryption health in Kubernetes and OpenShift control planes; see package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
