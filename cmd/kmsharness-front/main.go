// Command kmsharness-front adds the Alt-Svc field to the responses of an API server; see package front.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/altsvc/advertise/front"
	"github.com/kmsharness/kmsharness/internal/version"
)

func main() { os.Exit(run()) }

func run() int {
	if version.Asked("kmsharness-front", os.Args[1:], os.Stdout) {
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return front.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
