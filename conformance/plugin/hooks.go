package plugin

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/kmsharness/kmsharness/internal/command"
)

// hooks run the author's commands.
type hooks struct {
	commands Hooks
	values   map[string]string // of the placeholders
	timeout  time.Duration
}

// hookError is a hook that failed: a mistake of the environment, not of the plugin.
type hookError struct{ error }

func (e hookError) Unwrap() error { return e.error }

// Break makes the KMS fail in a mode (ModeFail and so on). The check must call Restore.
func (p *Plugin) Break(ctx context.Context, mode string) error {
	p.broken = mode
	return p.hooks.run(ctx, "hook-break", p.hooks.commands.Break, mode)
}

// Slow makes the KMS slow. The check must call Restore.
func (p *Plugin) Slow(ctx context.Context) error {
	p.broken = modeSlow
	return p.hooks.run(ctx, "hook-slow", p.hooks.commands.Slow, modeSlow)
}

// Restore undoes Break and Slow. It also runs when ctx has ended, so that no check leaves the KMS broken.
func (p *Plugin) Restore(ctx context.Context) error {
	return p.hooks.run(context.WithoutCancel(ctx), "hook-restore", p.hooks.commands.Restore, "restore")
}

// Rotate makes the KMS use a new KEK.
func (p *Plugin) Rotate(ctx context.Context) error {
	return p.hooks.run(ctx, "hook-rotate", p.hooks.commands.Rotate, "rotate")
}

func (h *hooks) run(ctx context.Context, name, text, mode string) error {
	t, err := command.Parse(text, hookPlaceholders...)
	if err != nil {
		return hookError{fmt.Errorf("%s: %w", name, err)}
	}
	values := map[string]string{"mode": mode}
	maps.Copy(values, h.values)
	program, args := t.Fill(values)
	if _, err := command.RunHook(ctx, name, append([]string{program}, args...), h.timeout); err != nil {
		return hookError{err}
	}
	return nil
}
