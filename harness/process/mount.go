package process

import (
	"slices"
	"syscall"
)

// Mount is a folder, From, that a program sees At a path below /var/run.
type Mount struct{ From, At string }

// mounted is the command in a mount namespace of its own, in which each folder is at its mount point; without mounts it is left alone.
//
// The mounts are made by a shell between fork and exec, as root: first everything is made private, so that nothing
// escapes into the namespace of the harness. /var/run is a tmpfs if a mount point does not exist on this machine, so nothing
// is written to the machine's own file system.
func (s Spec) mounted() Spec {
	if len(s.Mounts) == 0 {
		return s
	}
	args := []string{"-c", mountScript, "mount"}
	for _, m := range s.Mounts {
		args = append(args, m.From, m.At)
	}
	s.Args = slices.Concat(args, []string{"--", s.Path}, s.Args)
	s.Path = "/bin/sh"
	own := s.Attr
	s.Attr = func(attr *syscall.SysProcAttr) {
		if own != nil {
			own(attr)
		}
		attr.Unshareflags |= syscall.CLONE_NEWNS
	}
	return s
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
