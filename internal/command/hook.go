package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxHookOutput bounds what an error shows of a hook's output, in bytes.
const maxHookOutput = 500

// RunHook runs a command of somebody else, without a shell, and returns all that it wrote. A command that does not end in time is killed with its
// process group. The error names the hook, its exit code, its last output and the command. A process that a hook leaves in the background lives on.
func RunHook(ctx context.Context, name string, words []string, within time.Duration) (output []byte, err error) {
	// A file, not a pipe: nobody waits for a background process that inherits it.
	out, err := os.CreateTemp("", "kmsharness-hook-")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer out.Close()
	defer os.Remove(out.Name())
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it did not end within %v", within))
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	output, readErr := os.ReadFile(out.Name())
	return output, errors.Join(hookError(name, words, output, err), readErr)
}

func hookError(name string, words []string, output []byte, err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = fmt.Errorf("exit code %d", exit.ExitCode())
	}
	last := strings.TrimSpace(string(output[max(0, len(output)-maxHookOutput):]))
	if last == "" {
		return fmt.Errorf("%s: %w; it wrote nothing; the command was %s", name, err, Shown(words))
	}
	return fmt.Errorf("%s: %w; its last output: %s; the command was %s", name, err, last, Shown(words))
}
