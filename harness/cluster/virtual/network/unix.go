package network

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// makeSocket makes the file of a unix socket. Nobody can connect by it but on the network.
func makeSocket(path string) error {
	if err := syscall.Mknod(path, syscall.S_IFSOCK|0o755, 0); errors.Is(err, fs.ErrExist) {
		return syscall.EADDRINUSE
	} else {
		return err
	}
}

// maySend is what a system says of a unix socket by its file alone: whoever may not write it may not connect, also one who may do everything
// on this machine.
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
