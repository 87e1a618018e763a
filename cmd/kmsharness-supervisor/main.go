// Command kmsharness-supervisor runs the program of a container and stops, pauses and starts it on request; see package supervisor.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/supervisor"
	"github.com/kmsharness/kmsharness/internal/version"
)

func main() { os.Exit(run()) }

func run() int {
	if version.Asked("kmsharness-supervisor", os.Args[1:], os.Stdout) {
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return supervisor.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
