// Command kms-health-reporter probes the KMS v2 plugins of one node and reports their health; see package reporter.
//
// Build it with -tags grpcnotrace. The tag leaves out gRPC's /debug/requests pages, which nobody serves here, and with
// them html/template, which keeps the linker from removing unused methods: together 2.5 MiB of resident memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/version"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
)

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if version.Asked("kms-health-reporter", args, stdout) {
		return 0
	}
	o, errs := options.Parse(args, stdout)
	if len(errs) == 1 && errors.Is(errs[0], pflag.ErrHelp) {
		return 0
	}
	for _, err := range errs {
		fmt.Fprintln(stderr, "kms-health-reporter:", err)
	}
	if len(errs) > 0 {
		return entry.ExitUsage
	}
	saveMemory()
	log := reporter.NewLogger(stderr, o.LogFormat, o.Verbosity)
	klog.SetSlogLogger(log) // client-go logs through klog
	if err := reporter.Run(ctx, o, log); err != nil {
		log.Error("cannot run", "error", contract.SafeDetail(err.Error()))
		return entry.ExitFailed
	}
	log.Info("stopped")
	return 0
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
