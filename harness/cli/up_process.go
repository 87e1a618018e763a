package cli

import (
	"context"
	"encoding/json"
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
		return errors.Join(fmt.Errorf("no environment is up: start one with kmsharness up"), held.Close())
	}
	if owner == 0 {
		return fmt.Errorf("an environment is just being started: try again")
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
	// upPoll is how often a process that is to end is looked at.
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
		return upState{}, fmt.Errorf("an environment is up already (process %d): end it with kmsharness down", owner)
	}
	if err := held.Close(); err != nil { // the new one takes the lock itself
		return upState{}, err
	}
	log, err := os.Create(place.file("log"))
	if err != nil {
		return upState{}, fmt.Errorf("log of the environment: %w", err)
	}
	defer log.Close()
	ready, told, err := os.Pipe()
	if err != nil {
		return upState{}, fmt.Errorf("start the environment in the background: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if err := errors.Join(err, told.Close()); err != nil {
		return upState{}, fmt.Errorf("start the environment in the background: %w", err)
	}
	fmt.Fprintf(w, "booting, log: %s\n", log.Name())
	return awaitUp(ctx, place, cmd, ready)
}

// awaitUp reads the state that the environment's process sends when it is ready. Without one it has ended.
func awaitUp(ctx context.Context, place upPlace, cmd *exec.Cmd, ready *os.File) (state upState, err error) {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })()
	if err = json.NewDecoder(ready).Decode(&state); err == nil {
		return state, nil
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if ctx.Err() != nil {
		gone := func() (bool, error) { return len(ended) > 0, nil }
		return state, errors.Join(fmt.Errorf("the environment was not ready when this was interrupted, or after %v: it was ended", upTimeout), terminate(ctx, cmd.Process.Pid, gone))
	}
	<-ended
	return state, fmt.Errorf("the environment could not be booted: %s", place.lastLine())
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
