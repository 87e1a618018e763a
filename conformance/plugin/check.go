package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

// Check is one rule for a plugin, and how to test it.
type Check struct {
	conformance.Check
	// After are ids of checks without whose success this one can show nothing. If one of them failed, this check is blocked.
	After []string
	// Waits reports whether the check waits on purpose: it watches for a period, or until something becomes visible.
	Waits bool
	// Run returns nil if the plugin keeps the rule. A *conformance.Finding has the evidence of a broken rule; any other error is a broken rule
	// too, with its text as evidence. Run leaves the plugin as it found it.
	Run func(ctx context.Context, p *Plugin) error
}
