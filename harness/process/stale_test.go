package process

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// A process that is just being replaced by a program has no environment for a moment. It is looked at again.
func TestLeftoverThatIsBeingReplaced(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", "read begin; export "+EnvRunDir+"="+dir+"; exec sleep 100")
	cmd.Env = []string{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	if blank, err := killIfMarked(cmd.Process.Pid, dir); !blank || err != nil {
		t.Fatalf("blank %t, %v: it has no environment yet", blank, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	looked := make(chan error, 1)
	go func() { looked <- killLeftovers(ctx, dir) }()
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("it is still there")
	}
	cancel()
	if err := <-looked; err != nil {
		t.Error(err)
	}
}
