// Package engine_test starts and stops a container engine with the scripts of this folder, on a machine whose systemd and docker are stubs.
package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Stubs: the engine answers while the service runs, and each start is another run.
var stubs = map[string]string{
	"id":      `echo 0`,
	"dockerd": `exit 1`,
	"docker":  `[ -e "$HOME/running" ] && echo 1`,
	"systemctl": `case "$*" in
start*) echo "$RANDOM$RANDOM" >"$HOME/running" ;;
stop*) rm -f "$HOME/running" ;;
*InvocationID*) cat "$HOME/running" ;;
esac`,
}

type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t, t.TempDir()}
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "HOME="+m.dir, "XDG_STATE_HOME=", "STAGES_ROOM=", "PATH="+m.dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

func (m *machine) running() bool {
	_, err := os.Stat(filepath.Join(m.dir, "running"))
	return err == nil
}

// What systemd started for up.sh, down.sh stops.
func TestEngineOfSystemd(t *testing.T) {
	m := newMachine(t)
	if out := m.run("./up.sh"); !m.running() || !strings.Contains(out, "make engine-down") {
		t.Fatalf("it did not start: %s", out)
	}
	if out := m.run("./down.sh"); m.running() {
		t.Errorf("it is left: %s", out)
	}
}

// An engine that runs already, or that somebody has started again since, is not stopped.
func TestEngineOfSomebodyElse(t *testing.T) {
	m := newMachine(t)
	m.run(filepath.Join(m.dir, "systemctl"), "start")
	m.run("./up.sh")
	if out := m.run("./down.sh"); !m.running() {
		t.Errorf("it was stopped: %s", out)
	}
	m.run(filepath.Join(m.dir, "systemctl"), "stop")
	m.run("./up.sh")
	m.run(filepath.Join(m.dir, "systemctl"), "start")
	if out := m.run("./down.sh"); !m.running() {
		t.Errorf("another run of it was stopped: %s", out)
	}
}
