package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// lockPoll is how often a lock that another process has is asked for again: a flock that waits could not be interrupted.
const lockPoll = 20 * time.Millisecond

// TryLock locks a file, and makes it if there is none. It returns nil if another process has the lock. The lock ends with the file or with this process.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// Lock is TryLock, but waits until no other process has the lock. waiting is called once if one has it.
func Lock(ctx context.Context, path string, waiting func()) (lock *os.File, err error) {
	told := false
	err = poll.Until(ctx, lockPoll, func() (bool, error) {
		if lock, err = TryLock(path); lock == nil && err == nil && !told {
			told = true
			waiting()
		}
		return lock != nil, err
	})
	return lock, err
}

// TakeTurn waits until no other harness of this user has the turn of that name, and has it until done is called or this process
// ends. Turns are for what takes longer side by side than one after another. waiting is called once if somebody else has it.
func TakeTurn(ctx context.Context, name string, waiting func()) (done func(), err error) {
	root, err := ownRoot(tempBase())
	if err != nil {
		return nil, fmt.Errorf("take turns at %s: %w", name, err)
	}
	lock, err := Lock(ctx, filepath.Join(root, "turn-"+name), waiting)
	if err != nil {
		return nil, fmt.Errorf("take turns at %s: %w", name, err)
	}
	return func() { _ = lock.Close() }, nil // nothing was written, and the lock ends in any case
}
