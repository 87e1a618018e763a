package supervisor_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// Bounds of waits for what must come, and how often a condition is looked at.
const (
	soon = 20 * time.Second
	look = 5 * time.Millisecond
)

// envHold makes the test binary be kmsharness-supervisor: its signals, exit code and orphans are then those of a process.
const envHold = "KMSHARNESS_TEST_HOLD"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == forge {
		os.Exit(beForger(os.Args[2]))
	}
	if os.Getenv(envHold) != "" {
		os.Exit(beHold())
	}
	goleak.VerifyTestMain(m)
}

func beHold() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := supervisor.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goleak:", err)
	}
	return code
}

// container is a supervisor with its program, in a folder that outlives it.
type container struct {
	t      *testing.T
	dir    string
	client supervisor.Client
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan int
}

// newFolder is short enough for a socket's path.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "kmsh-hold-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// run starts a container with a shell script as its program; flags come before it.
func run(t *testing.T, dir, script string, flags ...string) *container {
	t.Helper()
	return exe(t, dir, append(flags, "--", "/bin/sh", "-c", script)...)
}

func exe(t *testing.T, dir string, args ...string) *container {
	t.Helper()
	c := &container{t: t, dir: dir, ended: make(chan int, 1)}
	var err error
	if c.client, err = supervisor.NewClient("unix://" + filepath.Join(dir, "supervisor.sock")); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--control", "unix://" + filepath.Join(dir, "supervisor.sock"), "--journal", c.file("journal"), "--log", c.file("log")}, args...)
	c.cmd = exec.Command(os.Args[0], args...)
	c.cmd.Env = append(os.Environ(), envHold+"=1", "GORACE=atexit_sleep_ms=0")
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = c.cmd.Wait(); c.ended <- c.cmd.ProcessState.ExitCode() }()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-done
		if strings.Contains(c.output.String(), "goleak:") {
			t.Error(c.output.String())
		}
	})
	return c
}

func (c *container) file(name string) string { return filepath.Join(c.dir, name) }

// until waits for a condition to become true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for end := time.After(soon); !is(); {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("waited %v for %s", soon, what)
		}
	}
}

// state waits for the program to come into a state.
func (c *container) state(want string) (s supervisor.State) {
	c.t.Helper()
	until(c.t, "the state "+want, func() bool {
		var err error
		s, err = c.client.State(c.t.Context())
		return err == nil && s.State == want
	})
	return s
}

// said waits for a line of the program in the log.
func (c *container) said(line string, times int) {
	c.t.Helper()
	until(c.t, "the line "+line, func() bool {
		text, _ := os.ReadFile(c.file("log"))
		return strings.Count(string(text), line+"\n") >= times
	})
}

// exit waits for the end of the container and gives its exit code.
func (c *container) exit() int {
	c.t.Helper()
	select {
	case code := <-c.ended:
		return code
	case <-time.After(soon):
		c.t.Fatal("the container does not end")
		return 0
	}
}

func (c *container) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// journal is the states of all lines; every line must be readable by the recorder.
func (c *container) journal() string {
	c.t.Helper()
	f, err := os.Open(c.file("journal"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	var all []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, p, err := supervisor.DecodeLine(lines.Bytes())
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, p.State)
	}
	return strings.Join(all, " ")
}

// must is the state after a verb that has to succeed.
func must(t *testing.T) func(supervisor.State, error) supervisor.State {
	return func(s supervisor.State, err error) supervisor.State {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// refused says whether err is a conflict that says why.
func refused(err error, text string) bool {
	var p *httpjson.Problem
	return errors.As(err, &p) && p.Status == http.StatusConflict && strings.Contains(p.Message, text)
}

// procState is the letter of /proc/PID/stat; "" without a process.
func procState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
