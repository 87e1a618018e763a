// Command openshift-reporter has the shape of the reporter that OpenShift ships; see package openshift.
package main

import (
	"context"
	"io"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/scenarios/mutants/openshift"
)

func main() {
	entry.Run(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return openshift.Main(ctx, host.Host{}, args, stdout, stderr)
	})
}
