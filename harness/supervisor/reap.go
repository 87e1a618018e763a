package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adopt makes orphans below this process its children. Process 1 has them anyway, but where a pod shares its process
// namespace, the supervisor is not process 1.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// reap collects dead orphans until ctx ends. The program itself is left to its supervisor, who wants its exit code.
func (p *program) reap(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		select {
		case <-died:
			p.sweep()
		case <-ctx.Done():
			return
		}
	}
}

// sweep looks at all processes, because wait(2) cannot be asked for any child but one.
func (p *program) sweep() {
	p.forking.Lock()
	defer p.forking.Unlock()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // collected by somebody else
		}
		if pid, ok := deadChild(string(text), os.Getpid()); ok && !p.owns(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// owns says whether pid is the program's, alive or not yet collected. The caller holds forking.
func (p *program) owns(pid int) bool {
	if p.current == nil || p.current.PID() != pid {
		return false
	}
	select {
	case <-p.current.Done():
		return false
	default:
		return true
	}
}

// deadChild reads /proc/PID/stat, "PID (NAME) STATE PPID …" where NAME may hold anything, and gives the id if the process
// is a zombie and a child of parent.
func deadChild(stat string, parent int) (pid int, ok bool) {
	id, _, found := strings.Cut(stat, " ")
	end := strings.LastIndexByte(stat, ')')
	if !found || end < 0 {
		return 0, false
	}
	rest := strings.Fields(stat[end+1:])
	if len(rest) < 2 || rest[0] != "Z" || rest[1] != strconv.Itoa(parent) {
		return 0, false
	}
	pid, err := strconv.Atoi(id)
	return pid, err == nil
}
