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
	// broken is the mode in which the check broke the KMS; empty: it did not.
	broken string
}

// hookError is a hook that failed: a mistake of the environment, not of the plugin.
type hookError struct{ error }

func (e hookError) Unwrap() error { return e.error }

// Break makes the KMS fail in a mode (ModeFail and so on), or makes it slow. The check must call Restore.
func (h *hooks) Break(ctx context.Context, mode string) error {
	h.broken = mode
	if mode == ModeSlow {
		return h.run(ctx, "plugin.slow", h.commands.Slow, mode)
	}
	return h.run(ctx, "plugin.break", h.commands.Break, mode)
}

// Restore undoes Break. It also runs when ctx has ended, so that no check leaves the KMS broken.
func (h *hooks) Restore(ctx context.Context) error {
	return h.run(context.WithoutCancel(ctx), "plugin.restore", h.commands.Restore, "restore")
}

// Rotate makes the KMS use a new KEK.
func (h *hooks) Rotate(ctx context.Context) error {
	return h.run(ctx, "plugin.rotate", h.commands.Rotate, "rotate")
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
