package live

import (
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// TestHooks are the places at which what the harness does for a cluster can be made wrong on purpose: it installs, switches and migrates. The zero value
// leaves everything right.
type TestHooks struct {
	// Serve takes the place of what a pod begins with that was rolled back by a number of revisions.
	Serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)
	// Stages takes the place of the stages of a switch without an operator.
	Stages func(good []encryption.Stage) []encryption.Stage
	// Skip keeps an object of a name from being migrated, of an aggregated API server or (empty) of kube-apiserver.
	Skip func(apiServer, name string) bool
	// AwaitOne is content when the first API server has loaded a stage.
	AwaitOne bool
	// PluginsEndFirst ends the plugins that a switch makes superfluous before it begins, or that are to have another image that cannot start.
	// ReportersEndLast ends the reporters after them.
	PluginsEndFirst, ReportersEndLast bool
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
