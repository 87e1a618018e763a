package local

import (
	"slices"
	"syscall"

	"github.com/kmsharness/kmsharness/harness/process"
)

// mount is a folder of this machine that a program sees below /var/run.
type mount struct{ from, at string }

// mounted runs a command in a mount namespace of its own, in which each folder is at its mount point; without mounts it leaves the
// command alone.
//
// The mounts are made by a shell between fork and exec, as root: first everything is made private, so that nothing
// escapes into the namespace of the harness. /var/run is a tmpfs if a mount point does not exist on this machine, so nothing
// is written to the machine's own file system.
func mounted(spec process.Spec, mounts []mount) process.Spec {
	if len(mounts) == 0 {
		return spec
	}
	args := []string{"-c", mountScript, "mount"}
	for _, m := range mounts {
		args = append(args, m.from, m.at)
	}
	spec.Args = slices.Concat(args, []string{"--", spec.Path}, spec.Args)
	spec.Path = "/bin/sh"
	spec.Attr = func(attr *syscall.SysProcAttr) { attr.Unshareflags |= syscall.CLONE_NEWNS }
	return spec
}

// mountScript takes pairs of a folder and its mount point, -- and the command. A tmpfs on /var/run keeps what is mounted below it
// unreachable: reporters need nothing else there. The folders are bound aside first, in case they lie there themselves.
const mountScript = `set -e
mount --make-rprivate /
aside=$(mktemp -d)
points= missing= n=0
while [ "$1" != -- ]; do
  mkdir "$aside/$n"
  [ -d "$2" ] || missing=yes
  mount --bind "$1" "$aside/$n"
  points="$points $2" n=$((n + 1))
  shift 2
done
shift
[ -z "$missing" ] || mount -t tmpfs -o mode=0755 tmpfs /var/run
n=0
for at in $points; do
  mkdir -p "$at"
  mount --move "$aside/$n" "$at"
  rmdir "$aside/$n" 2>/dev/null || true
  n=$((n + 1))
done
rmdir "$aside" 2>/dev/null || true
exec "$@"
`
