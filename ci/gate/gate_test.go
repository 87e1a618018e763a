// Package gate_test runs gates of a few stages and shows that stages are bounded and that nothing is left, however a gate ends.
package gate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds the wait for what a gate does within a few seconds.
const patience = 60 * time.Second

// stubborn begins a process in a session of its own and ignores the request to end.
const stubborn = `trap "" TERM; setsid sleep 1000 & touch "$TMPDIR/file" "$MARK"; sleep 1000; sleep 1000`

// gate is a project whose only content is a gate.
type gate struct {
	t         *testing.T
	cmd       *exec.Cmd
	out       bytes.Buffer
	dir, mark string
}

// start begins a gate of these stages.
func start(t *testing.T, stages string, env ...string) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir()}
	g.mark = filepath.Join(g.dir, "mark")
	for _, name := range []string{"gate/stages.sh", "gate/janitor.sh", "leftovers.sh", "engine/lib.sh"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		g.write("ci/"+name, string(text))
	}
	if err := os.Mkdir(filepath.Join(g.dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	g.write("gate", "cd "+g.dir+"\n. ci/gate/stages.sh\ndefault_time=600\nsupervised \"$@\"\n"+stages+"\nsummary\n")
	g.cmd = exec.Command("bash", filepath.Join(g.dir, "gate"))
	g.cmd.Env = append(os.Environ(), "STAGES_ROOM=", "STAGES=", "TIME_LIMIT=", "STAGES_GRACE=1", "MARK="+g.mark, "TMPDIR="+filepath.Join(g.dir, "tmp"), "PATH="+noEngine(t))
	g.cmd.Env = append(g.cmd.Env, env...)
	g.cmd.Stdout, g.cmd.Stderr = &g.out, &g.out
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return g
}

// noEngine is a PATH with a docker that never answers in time.
func noEngine(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + os.Getenv("PATH")
}

func (g *gate) write(name, text string) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		g.t.Fatal(err)
	}
}

// until polls a condition, with a deadline.
func (g *gate) until(what string, met func() bool) {
	g.t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !met(); <-ticker.C {
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: not within %v: %v\n%s", what, patience, g.left(), g.out.String())
		}
	}
}

// ends waits for the gate and returns its exit code and output.
func (g *gate) ends() (code int, out string) {
	g.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- g.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		g.t.Fatalf("the gate did not end within %v", patience)
	}
	return g.cmd.ProcessState.ExitCode(), g.out.String()
}

// left lists the processes of the gate and the temporary files of its stages.
func (g *gate) left() []string {
	var all []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte("MARK="+g.mark+"\x00")) {
			all = append(all, file)
		}
	}
	files, _ := filepath.Glob(filepath.Join(g.dir, "tmp", "*"))
	return append(all, files...)
}

func (g *gate) leavesNothing() {
	g.t.Helper()
	g.until("nothing is left", func() bool { return len(g.left()) == 0 })
}

func TestAllStagesRunAndOneFailureFails(t *testing.T) {
	for stages, want := range map[string]struct {
		code int
		text string
	}{
		"stage one 9 true; stage two 9 echo hello":                                 {0, "hello"},
		"stage one 9 false; stage two 9 echo hello":                                {1, "hello"},
		"stage one 1 sleep 50; stage two 9 echo hello":                             {1, "ended after its limit of 1 s"},
		"STAGES=two; stage one 9 false; stage two 9 echo hello":                    {0, "hello"},
		`stage one 2 bash -c '` + stubborn + `'; stage two 9 echo hello`:           {1, "hello"},
		"TIME_LIMIT=3; stage one 9 sleep 50; stage two 9 echo hello":               {1, "no time is left of 3 s"},
		"beside one echo hello; stage two 9 true; joined one 9":                    {0, "hello"},
		"beside one false; stage two 9 echo hello; joined one 9":                   {1, "hello"},
		"beside one sleep 50; stage two 9 true; joined one 1":                      {1, "ended after its limit of 1 s"},
		"STAGES=two; beside one false; stage two 9 echo hello; joined one 9":       {0, "hello"},
		"stage one 9 bash -c 'setsid sleep 1000 & touch $TMPDIR/file'; echo hello": {0, "janitor: ending"},
	} {
		t.Run(stages, func(t *testing.T) {
			t.Parallel()
			g := start(t, stages)
			code, out := g.ends()
			if code != want.code || !strings.Contains(out, want.text) || !strings.Contains(out, "=== summary") {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, want.code, want.text, out)
			}
			g.leavesNothing()
		})
	}
}

// A gate that is ended in a stage leaves nothing, and no further stage begins.
func TestEndedInAStage(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			t.Parallel()
			g := start(t, `stage one 500 bash -c '`+stubborn+`'; stage two 9 touch `+`"$MARK-two"`)
			g.until("stage one runs", func() bool { _, err := os.Stat(g.mark); return err == nil })
			if err := g.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code, out := g.ends(); code == 0 {
				t.Errorf("exit code 0\n%s", out)
			}
			g.leavesNothing()
			if _, err := os.Stat(g.mark + "-two"); err == nil {
				t.Error("stage two was begun")
			}
		})
	}
}

// A test that is skipped and not listed fails the night; a listed one, and a failure, are as ever.
func TestSkips(t *testing.T) {
	listed, err := os.ReadFile("skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(listed)) {
		name, reason, _ := strings.Cut(line, " ")
		if found, err := exec.Command("git", "grep", "-qw", "func "+name, "--", "../../*_test.go").CombinedOutput(); err != nil || strings.TrimSpace(reason) == "" {
			t.Errorf("skips.txt: %q: expected a test and a reason: %v\n%s", line, err, found)
		}
	}
	for output, want := range map[string]struct {
		code int
		text string
	}{
		"--- PASS: TestA (0.00s)\nok  \tx\t0.1s":                                       {0, "ok  \tx"},
		"    --- SKIP: TestCatalogue/x (0.00s)\n--- SKIP: TestCatalogue (0.00s)\nok  ": {0, "ok"},
		"--- SKIP: TestCatalogueOnes (0.00s)\nok  \tx":                                 {1, "TestCatalogueOnes"},
		"    --- SKIP: TestA/sub (0.00s)\nok  \tx":                                     {1, "TestA"},
		"--- FAIL: TestA (0.00s)\nFAIL\tx":                                             {1, "--- FAIL: TestA"},
	} {
		dir := t.TempDir()
		stub := "#!/bin/bash\nprintf '%s\\n' '" + output + "'\n! grep -q FAIL <<<'" + output + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("./unit.sh", filepath.Join(dir, "log"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != want.code || !strings.Contains(string(out), want.text) {
			t.Errorf("%q: exit code %d, want %d and %q in:\n%s", output, cmd.ProcessState.ExitCode(), want.code, want.text, out)
		}
	}
}
