package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/process"
)

// patience bounds waits for what must come.
const patience = 10 * time.Second

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

// journal keeps the changes of a supervisor.
type journal struct {
	mu      sync.Mutex
	changes []process.Change
}

func (j *journal) add(c process.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.changes = append(j.changes, c)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []string
	for _, c := range j.changes {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s/%s %s", c.State, c.Cause, c.Output)))
	}
	return strings.Join(all, " ")
}

func newSupervisor(t *testing.T) (*process.Supervisor, *journal) {
	t.Helper()
	j := &journal{}
	s := process.New(process.Options{OnChange: j.add})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, j
}

// shell starts a script.
func shell(t *testing.T, s *process.Supervisor, script string) *process.Process {
	t.Helper()
	p, err := s.Start(t.Context(), process.Spec{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", script},
		LogFile: filepath.Join(t.TempDir(), "log"), StopTimeout: 500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// said waits until the process has printed a line.
func said(t *testing.T, p *process.Process, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := p.WaitReady(ctx, time.Millisecond, func(context.Context) error {
		text, err := os.ReadFile(p.LogFile())
		if err == nil && !strings.Contains(string(text), line+"\n") {
			err = fmt.Errorf("no line %q in %q", line, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, p *process.Process) process.Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the process does not end")
	}
	exit, ok := p.Exit()
	if !ok {
		t.Fatal("Done is closed, but there is no exit state")
	}
	return exit
}

func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name, script string
		end          func(*process.Process) error
		want         process.Exit
		journal      string
	}{
		{"exits", "echo up; exit 3", nil, process.Exit{Code: 3, Cause: process.CauseCrash}, "running/start exited/crash up"},
		{"crashes", "echo up; kill -SEGV $$", nil,
			process.Exit{Code: -1, Signal: syscall.SIGSEGV, Cause: process.CauseCrash}, "running/start exited/crash up"},
		{"stops", "trap 'exit 0' TERM; sleep 100 & echo up; wait",
			func(p *process.Process) error { return p.Stop(context.Background()) },
			process.Exit{Cause: process.CauseStop}, "running/start exited/stop"},
		{"ignores SIGTERM", "trap '' TERM; echo up; exec sleep 100",
			func(p *process.Process) error { return p.Stop(context.Background()) },
			process.Exit{Code: -1, Signal: syscall.SIGKILL, Cause: process.CauseStop, Forced: true}, "running/start exited/stop"},
		{"killed", "echo up; exec sleep 100", (*process.Process).Kill,
			process.Exit{Code: -1, Signal: syscall.SIGKILL, Cause: process.CauseKill}, "running/start exited/kill"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, j := newSupervisor(t)
			p := shell(t, s, test.script)
			if test.end != nil {
				said(t, p, "up")
				if err := test.end(p); err != nil {
					t.Fatal(err)
				}
			}
			if got := wait(t, p); got != test.want {
				t.Errorf("ended with %+v, expected %+v", got, test.want)
			}
			if j.String() != test.journal {
				t.Errorf("changes are %v, expected %v", j, test.journal)
			}
			if err := errors.Join(p.Stop(t.Context()), p.Kill(), p.Resume()); err == nil || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("Resume of a dead process: %v", err)
			}
		})
	}
}

func TestPause(t *testing.T) {
	s, j := newSupervisor(t)
	p := shell(t, s, "echo up; exec sleep 100")
	said(t, p, "up")
	for range 2 {
		if err := p.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := kernelState(t, p.PID()); got != "T" {
		t.Errorf("the kernel says %s, expected T (stopped)", got)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := kernelState(t, p.PID()); got == "T" {
		t.Error("still stopped after Resume")
	}
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil { // must not wait for a resume
		t.Fatal(err)
	}
	if exit := wait(t, p); exit.Signal != syscall.SIGTERM {
		t.Errorf("a paused process ended with %v, expected SIGTERM", exit)
	}
	if want := "running/start paused/pause running/resume paused/pause exited/stop"; j.String() != want {
		t.Errorf("changes are %v, expected %v", j, want)
	}
	if err := p.Pause(t.Context()); err == nil {
		t.Error("a dead process was paused")
	}
}

// A process that starts children all the time is caught in the middle of it sooner or later.
func TestPauseOfAProcessThatStartsChildren(t *testing.T) {
	s, _ := newSupervisor(t)
	p := shell(t, s, "echo up; while :; do /bin/true; done")
	said(t, p, "up")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 50 {
		if err := p.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

// kernelState is the letter in /proc/PID/stat.
func kernelState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

func TestKillTakesTheWholeGroup(t *testing.T) {
	for name, end := range map[string]func(*process.Process) error{
		"kill": (*process.Process).Kill,
		"stop": func(p *process.Process) error { return p.Stop(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSupervisor(t)
			p := shell(t, s, "sleep 100 & echo $!; echo up; wait")
			said(t, p, "up")
			text, err := os.ReadFile(p.LogFile())
			if err != nil {
				t.Fatal(err)
			}
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			gone(t, strings.Fields(string(text))[0])
		})
	}
}

// gone waits until a process is gone, or a zombie that waits for a reaper who is not ours.
func gone(t *testing.T, pid string) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("process %s is still there: %s", pid, stat)
		}
	}
}

func TestClose(t *testing.T) {
	s, _ := newSupervisor(t)
	var all []*process.Process
	for range 5 {
		p := shell(t, s, "trap '' TERM; echo up; exec sleep 100")
		said(t, p, "up")
		all = append(all, p)
	}
	begin := time.Now()
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("Close took %v: the children must be stopped at the same time", took)
	}
	for _, p := range all {
		wait(t, p)
	}
	if left := s.Children(); len(left) != 0 {
		t.Errorf("%d children are left", len(left))
	}
	_, err := s.Start(t.Context(), process.Spec{Name: "late", Path: "/bin/true", LogFile: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, process.ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	s, j := newSupervisor(t)
	log := filepath.Join(t.TempDir(), "log")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, start := range map[string]func() error{
		"no name": func() error {
			_, err := s.Start(t.Context(), process.Spec{Path: "/bin/true", LogFile: log})
			return err
		},
		"no program": func() error {
			_, err := s.Start(t.Context(), process.Spec{Name: "x", Path: "/nope", LogFile: log})
			return err
		},
		"no log directory": func() error {
			_, err := s.Start(t.Context(), process.Spec{Name: "x", Path: "/bin/true", LogFile: "/nope/log"})
			return err
		},
		"canceled": func() error {
			_, err := s.Start(canceled, process.Spec{Name: "x", Path: "/bin/true", LogFile: log})
			return err
		},
	} {
		if err := start(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if j.String() != "" || len(s.Children()) != 0 {
		t.Errorf("failed starts left %v, %v", j, s.Children())
	}
}

func TestWaitReady(t *testing.T) {
	s, _ := newSupervisor(t)
	not := errors.New("not yet")
	p := shell(t, s, "echo the reason; exit 7")
	err := p.WaitReady(t.Context(), time.Millisecond, func(context.Context) error { return not })
	if err == nil || !strings.Contains(err.Error(), "exit code 7") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("of a process that died: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = shell(t, s, "exec sleep 100").WaitReady(ctx, time.Millisecond, func(context.Context) error { return not })
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, not) {
		t.Errorf("of a process that is late: %v", err)
	}
}
