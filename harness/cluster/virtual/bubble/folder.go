package bubble

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// leastDescriptor is one that no process has, but for the folder.
const leastDescriptor = 900

// MakeFolder makes a folder for the programs of a bubble, of which a process has one at a time. Its path is the same in all processes: programs put
// paths into messages.
func MakeFolder() (dir string, remove func() error, err error) {
	real, err := os.MkdirTemp("", "kmsharness-virtual-")
	if err != nil {
		return "", nil, err
	}
	opened, err := os.Open(real)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(real))
	}
	defer opened.Close()
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, leastDescriptor)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(real))
	}
	remove = func() error { return errors.Join(unix.Close(fd), os.RemoveAll(real)) }
	dir = fmt.Sprintf("/proc/self/fd/%d/virtual", fd)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}
