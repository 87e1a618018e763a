package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/poll"
)

const (
	// downTimeout is for a clean end: the recording, then every process.
	downTimeout = 2 * closeTimeout
	// killTimeout is for an end by SIGKILL, which nothing can delay but the kernel.
	killTimeout = 5 * time.Second
)

func newDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the environment of kmsharness up",
		Long:  "End the environment of kmsharness up, and return when all of it is gone. Its history and logs stay until the next one.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func down(ctx context.Context, w io.Writer) error {
	place, err := upPlaceOfUser()
	if err != nil {
		return err
	}
	held, owner, err := place.lock()
	if err != nil {
		return err
	}
	if held != nil {
		return errors.Join(usage("no environment is up: start one with kmsharness up"), held.Close())
	}
	if owner == 0 {
		return usage("an environment is just being started: try again")
	}
	if err := terminate(ctx, owner, place.free); err != nil {
		return err
	}
	fmt.Fprintf(w, "ended; history and logs: %s\n", place.file("run"))
	return nil
}

// free says whether nobody holds the place any more.
func (p upPlace) free() (bool, error) {
	held, _, err := p.lock()
	if held == nil {
		return false, err
	}
	return true, held.Close()
}

// terminate asks the environment's process to end, kills it when it does not, and returns when gone says so. It goes on
// when ctx is over: half an end is none.
func terminate(ctx context.Context, pid int, gone func() (bool, error)) error {
	ctx = context.WithoutCancel(ctx)
	if ended, err := signalAndAwait(ctx, pid, unix.SIGTERM, downTimeout, gone); ended || err != nil {
		return err
	}
	ended, err := signalAndAwait(ctx, pid, unix.SIGKILL, killTimeout, gone)
	if err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("end process %d: it survived SIGKILL for %v", pid, killTimeout)
	}
	return sweep(ctx)
}

func signalAndAwait(ctx context.Context, pid int, signal unix.Signal, timeout time.Duration, gone func() (bool, error)) (bool, error) {
	if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("end process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := poll.Until(ctx, upPoll, gone)
	if ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// sweep removes what a killed harness left: a new run directory does that for all that lost their owner.
func sweep(ctx context.Context) error {
	dir, err := process.NewRunDir(ctx)
	if err != nil {
		return err
	}
	return dir.Close()
}
