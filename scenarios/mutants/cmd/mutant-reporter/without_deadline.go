package main

import (
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/probe"
)

// withoutDeadline probes with the context of the process: the deadline is a flag that never reaches the RPC.
func withoutDeadline(o options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Prober = probe.New(host.Host{}, o.Plugins, 24*time.Hour) }, nil
}
