package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeSocket makes the file of a unix socket, so that programs which look at files (a plugin that removes a stale
// socket, a fault of permissions) find one. Connections go through the Network only.
func makeSocket(path string) error {
	if err := syscall.Mknod(path, syscall.S_IFSOCK|0o755, 0); errors.Is(err, fs.ErrExist) {
		return syscall.EADDRINUSE
	} else {
		return err
	}
}

// bind makes the file of a unix socket that a listener is to have. The listener keeps the file's inode, as a kernel does: another one at the same path, after
// that was removed, has another inode, and connections go to the inode that the path leads to.
func bind(path string) (key string, release func(), err error) {
	if err := makeSocket(path); err != nil {
		return "", nil, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	return socketKey(path), func() { _ = unix.Close(fd) }, nil
}

// socketKey names the inode that a path leads to; empty: there is none.
func socketKey(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return ""
	}
	return fmt.Sprintf("inode %d of %d", s.Ino, s.Dev)
}

// maySend returns what Linux answers to connect on a unix socket by its file alone. The mode is read and not tried,
// since the harness may be root, which may connect to any socket.
func maySend(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case err != nil:
		return err
	case info.Mode().Perm()&0o200 == 0:
		return syscall.EACCES
	case info.Mode().Type() != fs.ModeSocket:
		return syscall.ECONNREFUSED
	}
	return nil
}
