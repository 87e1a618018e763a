// Command kms-health-reporter probes the KMS v2 plugins of one node and reports their health; see package reporter.
//
// Build it with -tags grpcnotrace. The tag leaves out gRPC's /debug/requests pages, which nobody serves here, and with
// them html/template, which keeps the linker from removing unused methods: together 2.5 MiB of resident memory.
package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
)

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	saveMemory()
	return reporter.Main(ctx, host.Host{}, args, stdout, stderr)
}

// saveMemory trades a little CPU for memory: a reporter works some milliseconds per interval, on a node that others
// need, and must stay below 20 MiB resident. One processor is enough to wait for plugins, and keeps the caches that Go
// has per processor from growing with the node. Whoever sets GOGC or GOMAXPROCS knows better.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
