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
		if err := removeIfStale(filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeIfStale(dir string) error {
	lock, err := lockFile(filepath.Join(dir, lockName), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its harness lives
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := killLeftovers(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// killLeftovers kills every process that is marked with the run directory and waits until it is gone.
func killLeftovers(dir string) error {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := killIfMarked(pid, dir); err != nil {
			return fmt.Errorf("end process %d left by a dead harness: %w", pid, err)
		}
	}
	return nil
}

// leftoverTimeout bounds the wait for a killed process: only one in uninterruptible I/O takes longer.
const leftoverTimeout = 5 * time.Second

// killIfMarked opens a descriptor of the process before it looks, so that the signal reaches the one that it looked at.
func killIfMarked(pid int, dir string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended meanwhile
	}
	defer unix.Close(fd)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil // not ours to read, so not our child
	}
	if !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+EnvRunDir+"="+dir+"\x00")) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	return waitGone(fd)
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
