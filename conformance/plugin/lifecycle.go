package plugin

import (
	"context"
	"time"
)

// ending is a way to end the plugin.
type ending func(*ownProcess, context.Context) error

// restart ends the plugin and starts it on the same path. It is a Finding if the plugin does not answer then. how names the signal.
func restart(ctx context.Context, p *Plugin, how string, end ending) error {
	if err := end(p.ownProcess, ctx); err != nil {
		return err
	}
	return startAfter(ctx, p, how)
}

// startAfter starts a plugin that has ended. A plugin that does not start is a Finding, without its output, which may have secrets. It is then
// started once more without the socket file that the last process left, so that other checks can run.
func startAfter(ctx context.Context, p *Plugin, what string) error {
	err := p.Start(ctx)
	if err == nil {
		return nil
	}
	seen := show(err)
	if end, ended := p.ended(); ended {
		seen = end
	}
	_ = p.revive(ctx) // Session.alive finds it where that fails
	return found("start at the same path after "+what, seen, "Status is answered within "+p.timing.Start.String())
}

// retry is how often a check asks a plugin that has just been started.
const retry = 50 * time.Millisecond

// sealsAgain waits until the plugin encrypts: the KMS may need time after a start.
func sealsAgain(ctx context.Context, p *Plugin) error {
	return p.until(ctx, retry, p.timing.Start, func(ctx context.Context) error {
		_, err := p.Seal(ctx)
		return err
	})
}
