package local

import (
	"syscall"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/process"
)

// mounted runs a command in a mount namespace of its own, in which dir is at contract.SocketDir; with an empty dir it
// leaves the command alone.
//
// The mounts are made by a shell between fork and exec, as root: first everything is made private, so that nothing
// escapes into the namespace of the harness. The directory below which the mount point lies is a tmpfs if it does not
// exist on this machine, so nothing is written to the machine's own file system.
func mounted(spec process.Spec, dir string) process.Spec {
	if dir == "" {
		return spec
	}
	spec.Args = append([]string{"-c", mountScript, "mount-sockets", dir, contract.SocketDir, spec.Path}, spec.Args...)
	spec.Path = "/bin/sh"
	spec.Attr = func(attr *syscall.SysProcAttr) { attr.Unshareflags |= syscall.CLONE_NEWNS }
	return spec
}

// mountScript takes the sockets' directory, the mount point, and the command. The parent of the mount point becomes a
// tmpfs that keeps what is mounted below it unreachable: reporters need nothing else there. The sockets' directory is
// bound aside first, in case it lies there itself.
const mountScript = `set -e
from=$1 at=$2
shift 2
mount --make-rprivate /
if [ ! -d "$at" ]; then
  up=${at%/*}
  aside=$(mktemp -d)
  mount --bind "$from" "$aside"
  mount -t tmpfs -o mode=0755 tmpfs "$up"
  mkdir "$at"
  mount --move "$aside" "$at"
  rmdir "$aside" 2>/dev/null || true
else
  mount --bind "$from" "$at"
fi
exec "$@"
`
