package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMountsAreSeenByTheProgramAlone: each folder is at its mount point, beside the others, and the machine has neither.
func TestMountsAreSeenByTheProgramAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	mounts := []Mount{{t.TempDir(), "/var/run/kmsplugin"}, {t.TempDir(), "/var/run/secrets/kubernetes.io/serviceaccount"}}
	before := map[string]bool{} // others use /var/run, too, and the first mount of a machine makes a folder there
	for _, m := range mounts {
		before[m.At] = exists(m.At)
		if err := os.WriteFile(filepath.Join(m.From, "file"), []byte("of "+m.At+"\n"), 0o600); err != nil {
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
			args, want = append(args, filepath.Join(m.At, "file")), want+"of "+m.At+"\n"
		}
		spec := Spec{Path: path, Args: args, Mounts: mounts[:n]}.mounted()
		cmd := exec.Command(spec.Path, spec.Args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if spec.Attr != nil {
			spec.Attr(cmd.SysProcAttr)
		}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%d mounts: %q, %v, expected %q", n, out, err, want)
		}
	}
	for at, was := range before {
		if exists(at) != was || exists(filepath.Join(at, "file")) {
			t.Errorf("%s is on the machine", at)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
