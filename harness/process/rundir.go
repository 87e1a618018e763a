package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// maxBase keeps a socket below a run directory within the 108 bytes of sockaddr_un: base, "/kmsh-<uid>/r<random>" (up to
// 30) and 45 for what the caller puts below.
const maxBase = 32

const lockName = "lock"

// RunDir is a directory for everything that one harness leaves on disk while it runs. Its path is short enough for unix
// sockets: at least 45 bytes are left for names below it.
type RunDir struct {
	Path string
	lock *os.File
}

// NewRunDir makes a run directory that nobody else uses, after it removed those of harnesses that no longer live, with
// the processes that they left. Directories of living harnesses are never touched: they hold a lock. Only the user
// can enter it.
func NewRunDir(ctx context.Context) (*RunDir, error) {
	root, err := ownRoot(tempBase())
	if err != nil {
		return nil, fmt.Errorf("make a run directory: %w", err)
	}
	return newRunDir(ctx, root)
}

func newRunDir(ctx context.Context, root string) (*RunDir, error) {
	// Held while directories come and go, so that nobody takes one for stale that is not locked yet.
	all, err := Lock(ctx, filepath.Join(root, lockName), func() {})
	if err != nil {
		return nil, fmt.Errorf("make a run directory: %w", err)
	}
	defer all.Close()
	if err := removeStale(ctx, root); err != nil {
		return nil, fmt.Errorf("remove stale run directories: %w", err)
	}
	path, err := os.MkdirTemp(root, "r")
	if err != nil {
		return nil, fmt.Errorf("make a run directory: %w", err)
	}
	lock, err := Lock(ctx, filepath.Join(path, lockName), func() {})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the run directory: %w", err), os.RemoveAll(path))
	}
	return &RunDir{Path: path, lock: lock}, nil
}

// Close removes the directory with everything in it. The processes that use it must have ended. It is safe to call
// twice.
func (d *RunDir) Close() error {
	if d.lock == nil {
		return nil
	}
	// Another harness that looks for stale directories must not meet one that is half removed.
	all, err := Lock(context.Background(), filepath.Join(filepath.Dir(d.Path), lockName), func() {})
	if err != nil {
		return fmt.Errorf("remove the run directory: %w", err)
	}
	defer all.Close()
	err = errors.Join(os.RemoveAll(d.Path), d.lock.Close())
	d.lock = nil
	if err != nil {
		return fmt.Errorf("remove the run directory: %w", err)
	}
	return nil
}

func tempBase() string {
	if base := filepath.Clean(os.TempDir()); len(base) <= maxBase {
		return base
	}
	return "/tmp"
}

// ownRoot is where the run directories of this user are. The temporary directory is everybody's, so somebody else
// may have made it first.
func ownRoot(base string) (string, error) {
	root := filepath.Join(base, "kmsh-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(root)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s is not a private directory of user %d: remove it, or set TMPDIR to another place", root, os.Getuid())
	}
	return root, nil
}

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
