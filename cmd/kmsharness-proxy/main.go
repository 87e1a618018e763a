// Command kmsharness-proxy passes TCP connections on with a fault; see package proxy.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/netfault/proxy"
	"github.com/kmsharness/kmsharness/internal/version"
)

func main() { os.Exit(run()) }

func run() int {
	if version.Asked("kmsharness-proxy", os.Args[1:], os.Stdout) {
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return proxy.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
