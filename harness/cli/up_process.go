package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
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

const (
	// upTimeout bounds a boot. The first one may have to build or fetch the control plane's programs.
	upTimeout = 20 * time.Minute
	// upPoll is how often a process in the background is looked at.
	upPoll = 50 * time.Millisecond
)

// detach starts the environment's process in a session of its own, so that it survives this terminal, and returns when
// the environment is ready. One that cannot boot tells why in its last line, and so does this.
func detach(ctx context.Context, w io.Writer, place upPlace, program string, args []string) (upState, error) {
	held, owner, err := place.lock()
	if err != nil {
		return upState{}, err
	}
	if held == nil {
		return upState{}, usage("an environment is up already (process %d): end it with kmsharness down", owner)
	}
	// What an earlier environment left must not look like the new one's; the new one takes the lock itself.
	if err := errors.Join(place.forget(), held.Close()); err != nil {
		return upState{}, err
	}
	log, err := os.Create(place.file("log"))
	if err != nil {
		return upState{}, fmt.Errorf("log of the environment: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return upState{}, fmt.Errorf("start the environment in the background: %w", err)
	}
	fmt.Fprintf(w, "booting, log: %s\n", log.Name())
	return awaitUp(ctx, place, cmd.Process.Pid)
}

func awaitUp(ctx context.Context, place upPlace, pid int) (upState, error) {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	var state upState
	err := poll.Until(ctx, upPoll, func() (ready bool, err error) {
		if state, ready, err = place.read(); err != nil || ready && state.PID == pid {
			return true, err
		}
		gone, err := reaped(pid)
		if gone {
			err = usage("the environment could not be booted: %s", place.lastLine())
		}
		return false, err
	})
	if ctx.Err() != nil {
		return upState{}, errors.Join(usage("the environment was not ready when this was interrupted, or after %v: it was ended", upTimeout), terminate(ctx, pid, func() (bool, error) { return reaped(pid) }))
	}
	return state, err
}

// reaped says whether this process's child is gone, without waiting for it.
func reaped(pid int) (bool, error) {
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	switch {
	case errors.Is(err, unix.EINTR):
		return false, nil
	case errors.Is(err, unix.ECHILD):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look after process %d: %w", pid, err)
	}
	return got == pid, nil
}

// lastLine is the first line of the error that the process ended with.
func (p upPlace) lastLine() string {
	text, err := os.ReadFile(p.file("log"))
	if err != nil {
		return err.Error()
	}
	const prefix = "\nkmsharness: "
	said := "\n" + string(text)
	at := strings.LastIndex(said, prefix)
	if at < 0 {
		return "it did not say why, see " + p.file("log")
	}
	line, _, _ := strings.Cut(said[at+len(prefix):], "\n")
	return line
}
