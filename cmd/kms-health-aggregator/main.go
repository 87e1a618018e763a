// Command kms-health-aggregator rolls up the health reports of KMS v2 plugins into conditions of their operator.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/aggregator/command"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return command.Main(ctx, os.Args[1:], os.Stderr)
}
