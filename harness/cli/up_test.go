package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/internal/program"
)

// command runs kmsharness with a cache of its own.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func ownPlace(t *testing.T) upPlace {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	place, err := upPlaceOfUser()
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func TestUpAndDownMistakes(t *testing.T) {
	ownPlace(t)
	for args, want := range map[string]string{
		"up --control-planes 0": "expected 1 to 7",
		"up --control-planes 8": "expected 1 to 7",
		"up --key-ids a_b":      "letters, digits and dashes",
		"up --key-ids 1,2,1":    "occurs twice",
		"up --key-ids=":         "expected 1 to 8",
		"up now":                "unknown command",
		"down":                  "no environment is up",
	} {
		code, _, stderr := command(t, strings.Fields(args)...)
		if code != program.ExitCouldNotRun || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %q, want one line with %q", args, code, stderr, want)
		}
	}
}

// TestOnlyOneIsUp: while one holds the place, another is refused, in the background as in the foreground.
func TestOnlyOneIsUp(t *testing.T) {
	place := ownPlace(t)
	held, err := place.take()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"up", "up --foreground"} {
		code, _, stderr := command(t, strings.Fields(args)...)
		if want := fmt.Sprintf("is up already (process %d)", os.Getpid()); code != program.ExitCouldNotRun || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if free, err := place.free(); err != nil || !free {
		t.Errorf("free %v, %v after its owner went", free, err)
	}
}

// TestDetach: what the process in the background does decides what the caller is told.
func TestDetach(t *testing.T) {
	place := ownPlace(t)
	for script, want := range map[string]string{
		"echo booting; echo 'kmsharness: etcd: no space left'; echo details; exit 2": "could not be booted: etcd: no space left",
		"exit 0": "it did not say why",
	} {
		var out bytes.Buffer
		if _, err := detach(context.Background(), &out, place, "/bin/sh", []string{"-c", script}); err == nil || !strings.Contains(err.Error(), want) || program.ExitCode(err) != program.ExitCouldNotRun {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	s, err := detach(context.Background(), &bytes.Buffer{}, place, "/bin/sh", []string{"-c", `echo "{\"PID\": $$, \"History\": \"h\"}" >&3; exec tail -f /dev/null`})
	if err != nil || s.History != "h" {
		t.Fatalf("state %+v, %v", s, err)
	}
	reaped := func() (bool, error) {
		got, err := unix.Wait4(s.PID, nil, unix.WNOHANG, nil)
		return got == s.PID, err
	}
	if err := terminate(context.Background(), s.PID, reaped); err != nil {
		t.Error(err)
	}
}

// TestDetachInterrupted: Ctrl-C while it boots leaves nothing in the background.
func TestDetachInterrupted(t *testing.T) {
	place := ownPlace(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := detach(ctx, &bytes.Buffer{}, place, "/bin/sh", []string{"-c", "echo $$ > " + pidFile + "; exec tail -f /dev/null"})
	if err == nil || !strings.Contains(err.Error(), "it was ended") {
		t.Errorf("%v, expected that it was ended", err)
	}
	if pid, err := os.ReadFile(pidFile); err == nil && exec.Command("kill", "-0", strings.TrimSpace(string(pid))).Run() == nil {
		t.Errorf("process %s still lives", pid)
	}
}

func TestUpPrints(t *testing.T) {
	var out bytes.Buffer
	s := upState{Description: live.Description{Kubeconfig: "/d/k", Nodes: []live.NodeDescription{{
		Name: "cp-1", APIServer: "https://a", Plugins: []live.PluginDescription{{KeyID: "2", Socket: "/d/kms-2.sock", Control: "/d/ctl-2.sock"}, {KeyID: "1"}},
	}}}}
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nexport KUBECONFIG=/d/k\n", "/d/kms-2.sock", "inject hang method=Status --control unix:///d/ctl-2.sock", "kmsharness down"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
