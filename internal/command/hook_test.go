package command

import (
	"strings"
	"testing"
	"time"
)

// TestHookErrors: a hook that fails is named with its exit code and its last output.
func TestHookErrors(t *testing.T) {
	for script, want := range map[string][]string{
		"exit 0": nil,
		"echo before; echo the session is lost >&2; exit 3": {"--plugin-break: exit code 3; its last output: before\nthe session is lost; the command was sh -c"},
		"exit 4":     {"exit code 4", "it wrote nothing"},
		"kill -9 $$": {"signal: killed"},
	} {
		_, err := RunHook(t.Context(), "--plugin-break", []string{"sh", "-c", script}, 10*time.Second)
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", script, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", script, err, w)
			}
		}
	}
	if _, err := RunHook(t.Context(), "--plugin-rotate", []string{"/nowhere/hook"}, time.Second); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a program that is missing: %v", err)
	}
}

// TestHookDeadline: a hook that hangs ends with its deadline, and so do the programs that it started.
func TestHookDeadline(t *testing.T) {
	began := time.Now()
	_, err := RunHook(t.Context(), "--plugin-break", []string{"sh", "-c", "sleep 60 & wait"}, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end within 100ms") || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestHookInTheBackground: a process that a hook leaves behind holds nobody up.
func TestHookInTheBackground(t *testing.T) {
	began := time.Now()
	output, err := RunHook(t.Context(), "--plugin-restore", []string{"sh", "-c", "sleep 20 & echo started"}, 10*time.Second)
	if err != nil || strings.TrimSpace(string(output)) != "started" || time.Since(began) > 5*time.Second {
		t.Errorf("%q, %v after %v", output, err, time.Since(began))
	}
}
