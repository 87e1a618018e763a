package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

const progressEvery = 200 * time.Millisecond

// suiteTimeout is Ginkgo's own limit, whose default of an hour is less than every scenario on kind may take on a slow machine. What hangs
// is the engine's business (engine.Limits).
const suiteTimeout = 12 * time.Hour

type suiteRun struct {
	runner, suite string // programs
	again         string // behind the names of its files, if it judges again what is inconclusive
	notAfter      time.Time
	scenarios     int // how many it runs
}

// runSuite runs the specs in processes of Ginkgo's, and shows their progress.
func (f *e2eFlags) runSuite(cmd *cobra.Command, s suiteRun) error {
	out := absolute(f.out)
	args := []string{"--procs", strconv.Itoa(f.procs), "--no-color", "--succinct", "--silence-skips", "--randomize-all=false", "--timeout", suiteTimeout.String()}
	if f.labels != "" {
		args = append(args, "--label-filter", f.labels)
	}
	if f.failFast {
		args = append(args, "--fail-fast")
	}
	log, progress := "suite"+s.again+".log", filepath.Join(out, "progress"+s.again+".log") // of Ginkgo, and of its processes
	args = append(args, s.suite, "--", "--kmsharness.backend", f.backend, "--kmsharness.dir", absolute("."), "--kmsharness.out", out, "--kmsharness.progress", progress)
	args = append(args, program.Given(f.passed, "--kmsharness.")...)
	if flags := f.judgedAlike(); len(flags) > 0 {
		args = append(args, "--kmsharness.flags", strings.Join(flags, " "))
	}
	if f.sut.System != (undertest.System{}) {
		file, err := f.writeSystem(out)
		if err != nil {
			return err
		}
		defer os.Remove(file) // OUT may be published, and a command may have a credential
		args = append(args, "--kmsharness.system", file)
	}
	if !s.notAfter.IsZero() {
		args = append(args, "--kmsharness.not-after", s.notAfter.Format(time.RFC3339))
	}
	if s.again != "" {
		args = append(args, "--kmsharness.again")
	}
	if verbose(cmd) {
		args = append(args, "--kmsharness.verbose")
	}
	run := exec.CommandContext(cmd.Context(), s.runner, args...)
	file, err := os.Create(filepath.Join(out, log))
	if err != nil {
		return fmt.Errorf("log of the suite: %w", err)
	}
	defer file.Close()
	run.Stdout, run.Stderr = file, file
	// The suite is a process group of its own, which gets one interrupt, however this process got its own: Ginkgo's runner passes none on to its
	// processes, and two of them would skip their clean-up. It must not outlive this process, also not kill -9.
	run.Cancel = func() error { return unix.Kill(-run.Process.Pid, unix.SIGINT) }
	run.WaitDelay = interruptGrace
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	defer showProgress(program.Progress(cmd, f.output), progress, s.scenarios)()
	if err := run.Run(); err != nil {
		return fmt.Errorf("%w; its own output is in %s", err, filepath.Join(f.out, log))
	}
	return nil
}

// writeSystem writes the description of the system under test for the processes of the suite.
func (f *e2eFlags) writeSystem(out string) (file string, err error) {
	text, err := f.sut.Encode()
	if err != nil {
		return "", err
	}
	file = filepath.Join(out, "system.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("description of the system under test: %w", err)
	}
	return file, nil
}

// showProgress prints the lines of a file until stop. On a terminal it counts the scenarios that have ended.
func showProgress(w io.Writer, path string, scenarios int) (stop func()) {
	count := func(line string) string { return line }
	if printer.IsTerminal(w) {
		count = counting(scenarios)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the end of a run that is interrupted is shown, too
	var showing sync.WaitGroup
	showing.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		copyLines(ctx, w, path, count, ticker.C)
	})
	return func() {
		cancel()
		showing.Wait()
	}
}

// ended is a line of progress by which a scenario ends.
var ended = regexp.MustCompile(`^\S+ +(?:passed|[A-Z ]+) in [0-9.]+s$|^\S+ +not (?:begun|supported)$`)

// counting puts before a line how many of some scenarios have ended.
func counting(of int) func(line string) string {
	n := 0
	return func(line string) string {
		text := ""
		if ended.MatchString(line) {
			n++
			text = fmt.Sprintf("%d of %d", n, of)
		}
		return fmt.Sprintf("%*s  %s", len(fmt.Sprintf("%d of %d", of, of)), text, line)
	}
}

// copyLines copies the lines of a file to w at every tick, and once more when ctx ends. What cannot be read is not shown.
func copyLines(ctx context.Context, w io.Writer, path string, count func(line string) string, ticks <-chan time.Time) {
	f := tail.NewFollower(path, func(line []byte) error {
		_, err := fmt.Fprintln(w, count(string(line)))
		return err
	})
	defer f.Close()
	show := func() { _ = f.Poll() }
	show()
	poll.Each(ctx, ticks, show)
	show()
}
