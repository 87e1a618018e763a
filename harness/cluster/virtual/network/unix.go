package network

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
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
