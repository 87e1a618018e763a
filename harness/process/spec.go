package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

type Spec struct {
	// Name is for changes and errors ("cp-1/apiserver"); it need not be unique.
	Name string
	// Path of the program and its arguments, without the program's name.
	Path string
	Args []string
	// Env is added to the harness's own environment; a later entry wins.
	Env []string
	// Dir is the working directory; empty means that of the harness.
	Dir string
	// LogFile receives stdout and stderr, appended. Its directory must exist.
	LogFile string
	// Stdout and Stderr, if given, receive the output instead of a log file. What a process has written is in them when it is Exited.
	Stdout, Stderr io.Writer
	// StopTimeout bounds the wait between SIGTERM and SIGKILL; 0 means DefaultStopTimeout.
	StopTimeout time.Duration
	// Nice lowers the process's priority (0 to 19) where the machine has nice(1): what is heavy then does not delay
	// what is light and timed.
	Nice int
	// Mounts are folders that the program sees elsewhere; they need root.
	Mounts []Mount
	// Attr changes how the process is created (namespaces). The process group and the parent-death signal are set
	// afterwards and cannot be changed.
	Attr func(*syscall.SysProcAttr)
}

// DefaultStopTimeout leaves a process twice the two seconds in which it must stop cleanly, as tolerance for a busy machine.
const DefaultStopTimeout = 4 * time.Second

// outputDelay bounds the wait for the last output of a process that has ended: only an orphan that kept the pipe takes longer.
const outputDelay = time.Second

// EnvRunDir is the environment variable that marks every child with the run directory it belongs to.
const EnvRunDir = "KMSHARNESS_RUN_DIR"

// command builds the command with its log file open; the caller closes the file (nil: there is none) after the start.
func (s Spec) command(runDir string) (*exec.Cmd, *os.File, error) {
	if s.Name == "" || s.Path == "" || (s.LogFile == "" && (s.Stdout == nil || s.Stderr == nil)) {
		return nil, nil, errors.New("a process needs a name, a path and a log file")
	}
	s = s.mounted()
	cmd := s.niced()
	log, err := s.output(cmd)
	if err != nil {
		return nil, nil, err
	}
	cmd.Dir, cmd.WaitDelay = s.Dir, outputDelay
	cmd.Env = append(os.Environ(), s.Env...)
	if runDir != "" {
		cmd.Env = append(cmd.Env, EnvRunDir+"="+filepath.Clean(runDir))
	}
	attr := &syscall.SysProcAttr{}
	if s.Attr != nil {
		s.Attr(attr)
	}
	attr.Setpgid, attr.Pgid, attr.Pdeathsig = true, 0, syscall.SIGKILL
	cmd.SysProcAttr = attr
	return cmd, log, nil
}

// output gives the command its stdout and stderr, and the log file if that is what they are.
func (s Spec) output(cmd *exec.Cmd) (*os.File, error) {
	if s.Stdout != nil && s.Stderr != nil {
		cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
		return nil, nil
	}
	log, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", s.Name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	return log, nil
}

// niced is the command, through nice(1) if it is to have a lower priority: a process cannot lower the priority of a
// child between fork and exec, and afterwards only that of single threads.
func (s Spec) niced() *exec.Cmd {
	if s.Nice > 0 {
		if nice, err := exec.LookPath("nice"); err == nil {
			return exec.Command(nice, append([]string{"-n", strconv.Itoa(s.Nice), s.Path}, s.Args...)...)
		}
	}
	return exec.Command(s.Path, s.Args...)
}

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
