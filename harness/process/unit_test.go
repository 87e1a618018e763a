package process_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/process"
)

// A unit has one process at a time, under its own name, and can be stopped and killed before it has any.
func TestUnit(t *testing.T) {
	s, _ := newSupervisor(t)
	u := process.NewUnit("unit", s)
	if err := errors.Join(u.Stop(t.Context()), u.Kill(t.Context())); err != nil || u.Process() != nil {
		t.Errorf("%v, process %v", err, u.Process())
	}
	for what, do := range map[string]func(context.Context) error{"pause unit": u.Pause, "resume unit": u.Resume} {
		if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), what+": it was never started") {
			t.Errorf("%s: %v", what, err)
		}
	}
	asked, log := 0, filepath.Join(t.TempDir(), "log")
	sleeps := func(context.Context) (process.Spec, error) {
		asked++
		return process.Spec{Path: "/bin/sleep", Args: []string{"60"}, LogFile: log}, nil
	}
	first, err := u.Launch(t.Context(), sleeps)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := u.Launch(t.Context(), sleeps); err != nil || again != first || asked != 1 || first.Name() != "unit" {
		t.Errorf("%v, asked %d times, name %s: expected the process that runs", err, asked, first.Name())
	}
	if err := errors.Join(u.Pause(t.Context()), u.Resume(t.Context()), u.Kill(t.Context())); err != nil {
		t.Error(err)
	}
	if second, err := u.Launch(t.Context(), sleeps); err != nil || second == first || u.Process() != second {
		t.Errorf("%v: expected another process", err)
	}
	if s := u.Status(); s.Exit != (process.Exit{}) || s.Crashed {
		t.Errorf("while it runs: %+v", s)
	}
	want := errors.New("no spec")
	if err := u.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := u.Launch(t.Context(), func(context.Context) (process.Spec, error) { return process.Spec{}, want }); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// The status of a process that ended by itself has its exit code and its last words.
func TestUnitCrashed(t *testing.T) {
	s, _ := newSupervisor(t)
	u := process.NewUnit("unit", s)
	p, err := u.Launch(t.Context(), func(context.Context) (process.Spec, error) {
		return process.Spec{Path: "/bin/sh", Args: []string{"-c", "echo unknown flag; exit 3"}, LogFile: filepath.Join(t.TempDir(), "log")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if s := u.Status(); !s.Crashed || s.Exit.String() != "exit code 3" || s.Output != "unknown flag\n" {
		t.Errorf("%+v", s)
	}
}
