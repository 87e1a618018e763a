package plugin

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
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

// LogIns is how many log-ins the KMS has seen.
func (h *hooks) LogIns(ctx context.Context) (int, error) {
	output, err := h.output(ctx, "plugin.count", h.commands.Count, "count")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(output)))
	if err != nil {
		return 0, hookError{fmt.Errorf("plugin.count: it printed %.64q: expected a number", output)}
	}
	return n, nil
}

func (h *hooks) run(ctx context.Context, name, text, mode string) error {
	_, err := h.output(ctx, name, text, mode)
	return err
}

func (h *hooks) output(ctx context.Context, name, text, mode string) ([]byte, error) {
	t, err := command.Parse(text, hookPlaceholders...)
	if err != nil {
		return nil, hookError{fmt.Errorf("%s: %w", name, err)}
	}
	values := map[string]string{"mode": mode}
	maps.Copy(values, h.values)
	program, args := t.Fill(values)
	output, err := command.RunHook(ctx, name, append([]string{program}, args...), h.timeout)
	if err != nil {
		return nil, hookError{err}
	}
	return output, nil
}
