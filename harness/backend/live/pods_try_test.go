package live

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// The bound of a check grows with the operator's patience, and stays below the time for which the operator waits.
func TestPatientChecks(t *testing.T) {
	for patience, want := range map[int]time.Duration{0: 8 * time.Second, 1: 8 * time.Second, 4: 32 * time.Second} {
		o := undertest.Operator{Patience: patience}
		if got := patient(checkTimeout, o); got != want || got+checkReserve >= patient(operatorCheckTimeout, o) {
			t.Errorf("patience %d: a check takes %v, the operator waits %v", patience, got, patient(operatorCheckTimeout, o))
		}
	}
}

func TestEndOfCheck(t *testing.T) {
	for want, s := range map[string]cluster.Status{
		"exit code 0":                          {},
		"exit code 2: unknown flag: --x Usage": {Exit: process.Exit{Code: 2}, Crashed: true, Output: "unknown flag: --x\n\x1b\nUsage\n"},
	} {
		if got := endOf(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// specMachine gives its units' specs to a test.
type specMachine struct {
	cluster.Machine
	spec func(context.Context) (process.Spec, error)
}

func (m *specMachine) Find(context.Context, string) (string, error) { return "/p", nil }
func (m *specMachine) Unit(_ history.Process, _ process.Probe, spec func(context.Context) (process.Spec, error)) cluster.Unit {
	m.spec = spec
	return nil
}

// A program that insists on the path of a pod's socket finds the plugin there, in every scenario of a control plane.
func TestMountedSocket(t *testing.T) {
	dir := t.TempDir()
	g := &cluster.Plugin{KeyID: "try-7", Socket: filepath.Join(dir, "kms-try-7.sock")}
	if err := os.WriteFile(g.Socket, []byte("plugin"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		socket, mounts, err := mountedSocket(dir, g)
		if err != nil || socket != "/var/run/kmsplugin/kms-1.sock" || len(mounts) != 1 || mounts[0].At != "/var/run/kmsplugin" {
			t.Fatalf("%s, %v, %v", socket, mounts, err)
		}
		if text, err := os.ReadFile(filepath.Join(mounts[0].From, "kms-1.sock")); err != nil || string(text) != "plugin" {
			t.Errorf("behind the link: %q, %v", text, err)
		}
		var m specMachine
		cluster.PlaceOn(&m, "", dir, nil, nil).Unit(history.Process{}, func(context.Context) (cluster.Command, error) { return cluster.Command{Mounts: mounts}, nil })
		if s, err := m.spec(t.Context()); err != nil || !slices.Equal(s.Mounts, mounts) {
			t.Errorf("%+v, %v", s, err)
		}
	}
}
