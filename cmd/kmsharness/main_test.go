package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary run as kmsharness.
const asProgram = "KMSHARNESS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A read of standard input cannot be interrupted, so the second signal ends the program by itself.
func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		reads := exec.Command(os.Args[0], "check", "-")
		reads.Env = append(os.Environ(), asProgram+"=1")
		stdin, err := reads.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reads.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- reads.Wait() }()
		if _, err := stdin.Write(bytes.Repeat([]byte("\n"), 1<<20)); err != nil { // more than a pipe holds: the program has begun to read
			t.Fatal(err)
		}
		signals := time.NewTicker(50 * time.Millisecond)
		defer signals.Stop()
		limit := time.After(10 * time.Second)
		for end := false; !end; {
			select {
			case err := <-ended:
				end = true
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != signal {
					t.Errorf("%v: ended with %v", signal, err)
				}
			case <-signals.C:
				if err := reads.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Fatal(err)
				}
			case <-limit:
				_ = reads.Process.Kill()
				t.Fatalf("%v: still running after many signals", signal)
			}
		}
	}
}
