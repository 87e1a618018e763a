package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// forge makes the test binary be a program under test that wants to excuse itself.
const forge = "forge"

// beForger tries what a program under test could do about the folder of its supervisor, and prints what it was able to.
func beForger(dir string) int {
	journal, parent := filepath.Join(dir, "journal"), os.Getppid()
	client, err := supervisor.NewClient("unix://" + filepath.Join(dir, "supervisor.sock"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, try := range []struct {
		name string
		do   func() error
	}{
		{"open the folder", func() error { return os.Chmod(dir, 0o777) }},
		{"move the folder", func() error { return os.Rename(dir, dir+"-2") }},
		{"trace the supervisor", func() error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", parent)); return err }},
		{"signal the supervisor", func() error { return syscall.Kill(parent, 0) }},
		{"become root", func() error { return syscall.Setuid(0) }},
		{"write the journal", func() error {
			f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = fmt.Fprintln(f, `{"time":"2026-11-22T10:00:00Z","state":"paused","pid":7}`)
				err = errors.Join(err, f.Close())
			}
			return err
		}},
		{"ask the supervisor", func() error { _, err := client.State(context.Background()); return err }},
	} {
		if try.do() == nil {
			fmt.Println("could", try.name)
			if try.name == "move the folder" {
				_ = os.Rename(dir+"-2", dir)
			}
		}
	}
	fmt.Println("tried")
	for {
		_ = syscall.Pause()
	}
}

// A program under test can neither write the journal that excuses it nor reach the control API, not even in a folder that its user owned. As the supervisor's own user it
// can do both.
func TestProgramCannotExcuseItself(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("starts a program as another user, which takes root")
	}
	programs := newFolder(t)
	forger := filepath.Join(programs, "forger")
	copyTo(t, forger)
	for name, test := range map[string]struct {
		owner int
		flags []string
		could []string
	}{
		"as the supervisor": {0, nil, []string{"open the folder", "move the folder", "trace the supervisor", "signal the supervisor", "become root",
			"write the journal", "ask the supervisor"}},
		"as another user":     {0, []string{"--user", "65533:65533"}, nil},
		"as the folder's own": {65533, []string{"--user", "65533:65533"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			above := newFolder(t)
			dir := filepath.Join(above, "s")
			if err := errors.Join(os.Chmod(above, 0o711), os.Mkdir(dir, 0o700), os.Chown(dir, test.owner, 0)); err != nil {
				t.Fatal(err)
			}
			c := exe(t, dir, append(test.flags, "--", forger, forge, dir)...)
			c.said("tried", 1)
			text, err := os.ReadFile(c.file("log"))
			if err != nil {
				t.Fatal(err)
			}
			var could []string
			for line := range strings.Lines(string(text)) {
				if what, ok := strings.CutPrefix(strings.TrimSpace(line), "could "); ok {
					could = append(could, what)
				}
			}
			if !slices.Equal(could, test.could) {
				t.Errorf("the program could %q, want %q", could, test.could)
			}
			if forged := strings.Contains(c.journal(), history.ProcessPaused); forged != (test.could != nil) {
				t.Errorf("the journal is %s", c.journal())
			}
			// The verbs act on a program of another user, too.
			m := must(t)
			same(t, "paused", m(c.client.Pause(t.Context())).State, supervisor.Paused)
			same(t, "resumed", m(c.client.Resume(t.Context())).State, supervisor.Running)
			same(t, "killed", m(c.client.Kill(t.Context())).State, supervisor.Killed)
		})
	}
}

// copyTo puts the test binary where every user can run it.
func copyTo(t *testing.T, path string) {
	t.Helper()
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close(), os.Chmod(filepath.Dir(path), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// A folder that belongs to the program's group is none that keeps it out.
func TestFolderOfTheProgramsGroup(t *testing.T) {
	dir := newFolder(t)
	gid := os.Getgid()
	if gid == 0 {
		gid = 65533
		if err := os.Chown(dir, 0, gid); err != nil {
			t.Fatal(err)
		}
	}
	c := exe(t, dir, "--user", fmt.Sprintf("65533:%d", gid), "--", "/bin/true")
	if code := c.exit(); code != 125 || !strings.Contains(c.output.String(), "belongs to the group") {
		t.Errorf("exit code %d: %s", code, c.output.String())
	}
}
