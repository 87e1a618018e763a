package process_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/process"
)

// envRole makes the test binary play a harness that dies: see play.
const envRole = "KMSHARNESS_TEST_ROLE"

// play makes a run directory, starts a child and a grandchild that has left the group, tells about them, and waits for its
// end: by SIGKILL ("killed") or by a panic ("panics").
func play(role string) int {
	dir, err := process.NewRunDir(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s := process.New(process.Options{RunDir: dir.Path})
	log := filepath.Join(dir.Path, "log")
	p, err := s.Start(context.Background(), process.Spec{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", "setsid sleep 100 & echo $!; echo up; wait"}, LogFile: log,
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for text := ""; !strings.Contains(text, "up\n"); {
		b, err := os.ReadFile(log)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		text = string(b)
	}
	grandchild, _, _ := strings.Cut(readAll(log), "\n")
	fmt.Println(dir.Path, p.PID(), grandchild)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	if role == "panics" {
		panic("as the test wants it")
	}
	return 0
}

func readAll(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// harness is this test binary playing a role.
type harness struct {
	cmd               *exec.Cmd
	in                io.WriteCloser
	dir               string
	child, grandchild string
}

func startHarness(t *testing.T, role, tmp string) *harness {
	t.Helper()
	h := &harness{cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), envRole+"="+role, "TMPDIR="+tmp)
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &h.dir, &h.child, &h.grandchild); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return h
}

// shortDir is a temporary directory whose path leaves room for sockets, unlike those of testing.T.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "kmsh-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Whatever ends a harness: its children die with it, and the next harness removes the rest, but nothing of one that lives.
func TestNothingSurvivesTheHarness(t *testing.T) {
	for _, role := range []string{"killed", "panics"} {
		t.Run(role, func(t *testing.T) {
			tmp := shortDir(t)
			t.Setenv("TMPDIR", tmp)
			alive := startHarness(t, "waits", tmp)
			dead := startHarness(t, role, tmp)
			if role == "killed" {
				if err := dead.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				dead.in.Close()
			}
			if err := dead.cmd.Wait(); err == nil {
				t.Fatal("the harness was to die")
			}
			gone(t, dead.child)

			next, err := process.NewRunDir(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			gone(t, dead.grandchild)
			if _, err := os.Stat(dead.dir); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dead.dir, err)
			}
			if _, err := os.Stat(alive.dir); err != nil {
				t.Errorf("the directory of a living harness: %v", err)
			}
			if _, err := os.Stat("/proc/" + alive.grandchild); err != nil {
				t.Errorf("a process of a living harness: %v", err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			alive.in.Close()
			if err := alive.cmd.Wait(); err != nil {
				t.Error(err)
			}
			last, err := process.NewRunDir(t.Context()) // also ends what "alive" left
			if err != nil {
				t.Fatal(err)
			}
			gone(t, alive.grandchild)
			if err := last.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
