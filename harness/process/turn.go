package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// turnPoll is how often a busy turn is asked for again; what has turns takes seconds at least.
const turnPoll = 250 * time.Millisecond

// TakeTurn waits until no other harness of this user has the turn of that name, and has it until done is called or this process
// ends. Turns are for what takes longer side by side than one after another. waiting is called once if somebody else has it.
func TakeTurn(ctx context.Context, name string, waiting func()) (done func(), err error) {
	root, err := ownRoot(tempBase())
	if err != nil {
		return nil, fmt.Errorf("take turns at %s: %w", name, err)
	}
	return takeTurn(ctx, filepath.Join(root, "turn-"+name), waiting)
}

func takeTurn(ctx context.Context, path string, waiting func()) (done func(), err error) {
	lock, err := lockNow(path)
	if errors.Is(err, unix.EWOULDBLOCK) {
		waiting()
		lock, err = lockSoon(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("take turns at %s: %w", filepath.Base(path), err)
	}
	return func() { _ = lock.Close() }, nil // nothing was written, and the lock ends in any case
}

func lockNow(path string) (*os.File, error) { return lockFile(path, unix.LOCK_EX|unix.LOCK_NB) }

// lockSoon asks again and again: a flock that waits could not be interrupted.
func lockSoon(ctx context.Context, path string) (*os.File, error) {
	ticker := time.NewTicker(turnPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
		if lock, err := lockNow(path); !errors.Is(err, unix.EWOULDBLOCK) {
			return lock, err
		}
	}
}
