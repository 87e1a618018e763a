package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// obedient programs: one that ends cleanly, and one that does not end at SIGTERM.
const (
	polite   = `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`
	stubborn = `trap '' TERM; echo up; while :; do sleep 0.01; done`
)

func TestStoppedStaysDownUntilStarted(t *testing.T) {
	c := run(t, newFolder(t), polite)
	c.said("up", 1)
	first := c.state(supervisor.Running)
	s := must(t)(c.client.Stop(t.Context()))
	if s.State != supervisor.Stopped || s.PID != 0 || s.ExitCode == nil || *s.ExitCode != 0 || procState(first.PID) != "" {
		t.Errorf("stopped: %+v", s)
	}
	if again := must(t)(c.client.Kill(t.Context())); again.State != s.State || !again.Since.Equal(s.Since) {
		t.Errorf("what is down cannot be killed: %+v, before %+v", again, s)
	}
	s = must(t)(c.client.Start(t.Context()))
	c.said("up", 2)
	if s.State != supervisor.Running || s.PID == 0 || s.ExitCode != nil {
		t.Errorf("started again: %+v", s)
	}
	if again := must(t)(c.client.Start(t.Context())); again != s {
		t.Errorf("what runs cannot be started: %+v", again)
	}
	s = must(t)(c.client.Kill(t.Context()))
	if s.State != supervisor.Killed || s.ExitCode == nil || *s.ExitCode != 137 {
		t.Errorf("killed: %+v", s)
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d of a container whose program is held", code)
	}
	same(t, "journal", c.journal(), "started stopped started killed")
}

func TestAProgramThatIgnoresSIGTERMIsKilledAfterItsGrace(t *testing.T) {
	c := run(t, newFolder(t), stubborn)
	c.said("up", 1)
	if s := must(t)(c.client.Stop(t.Context())); s.State != supervisor.Stopped || *s.ExitCode != 137 {
		t.Errorf("%+v", s)
	}
	text, err := os.ReadFile(c.file("journal"))
	if err != nil || !strings.Contains(string(text), "ignored SIGTERM") {
		t.Errorf("journal %s: %v", text, err)
	}
}

// What nobody asked for is what the kubelet sees without the supervisor.
func TestAnExitIsPassedOn(t *testing.T) {
	for script, want := range map[string]int{"exit 3": 3, "exit 0": 0, "kill -SEGV $$": 128 + int(syscall.SIGSEGV)} {
		c := run(t, newFolder(t), script)
		if code := c.exit(); code != want {
			t.Errorf("%s: exit code %d; %s", script, code, c.output.String())
		}
		same(t, script, c.journal(), "started exited")
	}
}

func TestKilledByAStranger(t *testing.T) {
	c := run(t, newFolder(t), polite)
	c.said("up", 1)
	if err := syscall.Kill(c.state(supervisor.Running).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 137 {
		t.Errorf("exit code %d", code)
	}
	same(t, "journal", c.journal(), "started exited")
	if _, err := os.Stat(c.file("supervisor.sock.held")); !os.IsNotExist(err) {
		t.Errorf("nobody asked for it, so the next container starts the program: %v", err)
	}
}

func TestPauseFreezesTheGroup(t *testing.T) {
	c := run(t, newFolder(t), `sh -c 'echo child $$; exec sleep 100' & `+polite)
	c.said("up", 1)
	until(t, "the child", func() bool { return c.child() != 0 })
	until(t, "the child's program", func() bool { // until then it may be halfway to it
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.child()))
		return string(text) == "sleep\n"
	})
	s := must(t)(c.client.Pause(t.Context()))
	if s.State != supervisor.Paused || procState(s.PID) != "T" {
		t.Errorf("%+v, the process is %q", s, procState(s.PID))
	}
	until(t, "the child to stand still", func() bool { return procState(c.child()) == "T" })
	if again := must(t)(c.client.Pause(t.Context())); again != s {
		t.Errorf("paused twice: %+v", again)
	}
	if _, err := c.client.Start(t.Context()); !refused(err, "paused") {
		t.Errorf("start of a paused program: %v", err)
	}
	if s = must(t)(c.client.Resume(t.Context())); s.State != supervisor.Running || procState(s.PID) == "T" {
		t.Errorf("%+v, the process is %q", s, procState(s.PID))
	}
	must(t)(c.client.Pause(t.Context()))
	if s = must(t)(c.client.Stop(t.Context())); *s.ExitCode != 0 {
		t.Errorf("a paused program can stop cleanly: %+v", s)
	}
	for _, verb := range []func() (supervisor.State, error){
		func() (supervisor.State, error) { return c.client.Pause(t.Context()) },
		func() (supervisor.State, error) { return c.client.Resume(t.Context()) },
	} {
		if _, err := verb(); !refused(err, "stopped; start it first") {
			t.Errorf("a stopped program has nothing to pause: %v", err)
		}
	}
	same(t, "journal", c.journal(), "started paused resumed paused stopped")
}

// child is the id that the script printed.
func (c *container) child() (pid int) {
	text, _ := os.ReadFile(c.file("log"))
	if i := strings.Index(string(text), "child "); i >= 0 {
		_, _ = fmt.Sscanf(string(text)[i:], "child %d\n", &pid)
	}
	return pid
}

func TestTheContainerIsToldToEnd(t *testing.T) {
	for _, test := range []struct {
		name, script, journal string
		before                func(*container)
		code                  int
	}{
		{"running", `trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done`, "started stopped", func(*container) {}, 7},
		{"paused", polite, "started paused stopped", func(c *container) { must(t)(c.client.Pause(t.Context())) }, 0},
		{"dies of it", `echo up; exec sleep 100`, "started stopped", func(*container) {}, 143},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := run(t, newFolder(t), test.script)
			c.said("up", 1)
			test.before(c)
			c.signal(syscall.SIGTERM)
			if code := c.exit(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			same(t, "journal", c.journal(), test.journal)
			if _, err := os.Stat(c.file("supervisor.sock")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the control socket is left: %v", err)
			}
		})
	}
}

// A kubelet restarts the container of a stopped API server as soon as its liveness probe fails often enough.
func TestHeldAcrossRestartsOfTheContainer(t *testing.T) {
	dir := newFolder(t)
	for state, verb := range map[string]func(*container) (supervisor.State, error){
		supervisor.Stopped: func(c *container) (supervisor.State, error) { return c.client.Stop(t.Context()) },
		supervisor.Killed:  func(c *container) (supervisor.State, error) { return c.client.Kill(t.Context()) },
	} {
		c := run(t, dir, polite)
		c.state(supervisor.Running)
		must(t)(verb(c))
		c.signal(syscall.SIGKILL) // leaves its socket
		c.exit()

		c = run(t, dir, polite)
		if s := c.state(state); s.PID != 0 {
			t.Errorf("after a restart: %+v", s)
		}
		if s := must(t)(c.client.Start(t.Context())); s.State != supervisor.Running {
			t.Errorf("started: %+v", s)
		}
		c.signal(syscall.SIGTERM)
		c.exit()
	}
	c := run(t, dir, polite)
	c.state(supervisor.Running)
}

func TestOutputIsInBothPlaces(t *testing.T) {
	dir := newFolder(t)
	for range 2 {
		c := run(t, dir, "echo to stdout; echo to stderr >&2; printf 'no end of line'; exit 1")
		c.exit()
		for _, part := range []string{"to stdout\n", "to stderr\n", "no end of line"} {
			if text := c.output.String(); !strings.Contains(text, part) {
				t.Errorf("the container's output: %q, want %q in it", text, part)
			}
		}
	}
	if text, _ := os.ReadFile(dir + "/log"); strings.Count(string(text), "to stdout\n") != 2 || strings.Count(string(text), "to stderr\n") != 2 {
		t.Errorf("the log of two containers: %q", text)
	}
}

func TestOrphansAreCollected(t *testing.T) {
	// A grandchild whose parent is gone, in a session of its own, so that it is the supervisor's to collect.
	c := run(t, newFolder(t), `(setsid sh -c 'echo child $$; exec sleep 0.2' &) ; `+polite)
	c.said("up", 1)
	until(t, "the orphan", func() bool { return c.child() != 0 })
	until(t, "the orphan to be collected", func() bool { return procState(c.child()) == "" })
	if s := must(t)(c.client.Stop(t.Context())); *s.ExitCode != 0 {
		t.Errorf("the program's own exit code: %+v", s)
	}
}

func TestProblemsAreNamed(t *testing.T) {
	c := run(t, newFolder(t), polite)
	c.state(supervisor.Running)
	other := exe(t, c.dir, "--", "/bin/true")
	if code := other.exit(); code != 125 || !strings.Contains(other.output.String(), "another process serves") {
		t.Errorf("a second hold at the same socket: %d, %s", code, other.output.String())
	}
	missing := exe(t, newFolder(t), "--", "/no/such/program")
	if code := missing.exit(); code != 125 || !strings.Contains(missing.output.String(), "no such file") {
		t.Errorf("a program that is missing: %d, %s", code, missing.output.String())
	}
}

// A verb whose line cannot be written has not succeeded.
func TestAnIncompleteJournalIsAnError(t *testing.T) {
	dir := newFolder(t)
	if err := os.Symlink("/dev/full", dir+"/journal"); err != nil {
		t.Fatal(err)
	}
	c := run(t, dir, polite)
	c.state(supervisor.Running)
	if _, err := c.client.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "the journal misses") {
		t.Errorf("stop: %v", err)
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 125 {
		t.Errorf("exit code %d", code)
	}
}

// The states of an end are the history's words.
func TestWords(t *testing.T) {
	for a, b := range map[string]string{
		supervisor.Stopped: history.ProcessStopped, supervisor.Killed: history.ProcessKilled, supervisor.Exited: history.ProcessExited, supervisor.Paused: history.ProcessPaused,
	} {
		same(t, "word", a, b)
	}
}
