package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// removeStale removes the run directories below root whose lock is free. The caller holds the lock of root.
func removeStale(ctx context.Context, root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !e.IsDir() {
			continue
		}
		if err := removeIfStale(ctx, filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeIfStale(ctx context.Context, dir string) error {
	lock, err := TryLock(filepath.Join(dir, lockName))
	if lock == nil || err != nil {
		return err // its harness lives
	}
	defer lock.Close()
	looking, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	if err := killLeftovers(looking, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// killLeftovers kills every process that is marked with the run directory and waits until it is gone. A process without an environment is looked at again
// until ctx ends: one that is just being replaced by a program has none for a moment.
func killLeftovers(ctx context.Context, dir string) error {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	var pids []int
	for _, proc := range procs {
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	err = poll.Until(ctx, execPoll, func() (bool, error) {
		var blank []int
		for _, pid := range pids {
			nothing, err := killIfMarked(pid, dir)
			if err != nil {
				return false, fmt.Errorf("end process %d left by a dead harness: %w", pid, err)
			}
			if nothing {
				blank = append(blank, pid)
			}
		}
		pids = blank
		return len(pids) == 0, nil
	})
	if ctx.Err() != nil {
		return nil // they have no environment
	}
	return err
}

const (
	// leftoverTimeout bounds the wait for a killed process: only one in uninterruptible I/O takes longer.
	leftoverTimeout = 5 * time.Second
	// execTimeout is how long processes without an environment are looked at, execPoll how often.
	execTimeout = 200 * time.Millisecond
	execPoll    = 5 * time.Millisecond
)

// killIfMarked opens a descriptor of the process before it looks, so that the signal reaches the one that it looked at. It reports whether the process
// has no environment to look at.
func killIfMarked(pid int, dir string) (blank bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, nil // it has ended meanwhile
	}
	defer unix.Close(fd)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false, nil // not ours to read, so not our child
	}
	if len(environ) == 0 {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err == nil, nil // the kernel's own processes, and those that have ended, have no program
	}
	if !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+EnvRunDir+"="+dir+"\x00")) {
		return false, nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return false, nil
		}
		return false, err
	}
	return false, waitGone(fd)
}

// waitGone returns when the process behind the descriptor has ended.
func waitGone(fd int) error {
	deadline := time.Now().Add(leftoverTimeout)
	for {
		left := time.Until(deadline)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR) && left > 0:
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("still there %v after SIGKILL", leftoverTimeout)
		default:
			return nil
		}
	}
}
