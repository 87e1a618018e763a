package live

import (
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// TestHooks are the places at which what the harness does for a cluster can be made wrong on purpose: it installs, switches and migrates, and runs
// this project's operator. The zero value leaves everything right.
type TestHooks struct {
	// Decide takes the place of the operator's decisions.
	Decide func(core.Observed, core.Options, time.Time) core.Plan
	// Contents may change what the operator sees of a Secret with credentials, whose version it is given.
	Contents func(version string, data map[string][]byte) map[string][]byte
	// Serve takes the place of what a pod begins with that was rolled back by a number of revisions.
	Serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)
	// Stages takes the place of the stages of a switch without an operator.
	Stages func(good []encryption.Stage) []encryption.Stage
	// Skip keeps an object of a name from being migrated, of an aggregated API server or (empty) of kube-apiserver.
	Skip func(apiServer, name string) bool
	// AwaitOne is content when the first API server has loaded a stage.
	AwaitOne bool
	// PluginsEndFirst ends the plugins that a switch makes superfluous before it begins, ReportersEndLast the reporters after them.
	PluginsEndFirst, ReportersEndLast bool
}

func (h TestHooks) decide(o core.Observed, opts core.Options, now time.Time) core.Plan {
	if h.Decide != nil {
		return h.Decide(o, opts, now)
	}
	return core.Decide(o, opts, now)
}

func (h TestHooks) serve(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
	if h.Serve != nil {
		return h.Serve(o, back)
	}
	return core.Serve(o, back)
}

func (h TestHooks) stages(good []encryption.Stage) []encryption.Stage {
	if h.Stages != nil {
		return h.Stages(good)
	}
	return good
}
