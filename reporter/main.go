package reporter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/version"
	"github.com/kmsharness/kmsharness/reporter/options"
)

// Main is the program kms-health-reporter on a host. It returns its exit code.
func Main(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
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
	log := NewLogger(stderr, o.LogFormat, o.Verbosity)
	if h.Alone() {
		klog.SetSlogLogger(log) // client-go logs through klog
	}
	if err := Run(ctx, h, o, log); err != nil {
		log.Error("cannot run", "error", contract.SafeDetail(err.Error()))
		return entry.ExitFailed
	}
	log.Info("stopped")
	return 0
}
