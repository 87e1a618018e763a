// Command kmsharness-supervisor runs the program of a container and stops, pauses and starts it on request; see package supervisor.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/supervisor"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return supervisor.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
