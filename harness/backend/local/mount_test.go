package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/process"
)

// TestMountsAreSeenByTheProgramAlone: each folder is at its mount point, beside the others, and the machine has neither.
func TestMountsAreSeenByTheProgramAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	before, _ := os.ReadDir("/var/run")
	mounts := []mount{{t.TempDir(), contract.SocketDir}, {t.TempDir(), live.ServiceAccountDir}}
	for _, m := range mounts {
		if err := os.WriteFile(filepath.Join(m.from, "file"), []byte("of "+m.at+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := range len(mounts) + 1 {
		args, want := []string{"in order"}, "in order\n"
		path := "/bin/echo"
		if n > 0 {
			args, want, path = nil, "", "/bin/cat"
		}
		for _, m := range mounts[:n] {
			args, want = append(args, filepath.Join(m.at, "file")), want+"of "+m.at+"\n"
		}
		spec := mounted(process.Spec{Path: path, Args: args}, mounts[:n])
		cmd := exec.Command(spec.Path, spec.Args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if spec.Attr != nil {
			spec.Attr(cmd.SysProcAttr)
		}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%d mounts: %q, %v, expected %q", n, out, err, want)
		}
	}
	if after, _ := os.ReadDir("/var/run"); len(after) != len(before) {
		t.Errorf("/var/run has %d entries, %d before", len(after), len(before))
	}
}
