package kmsplugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
)

// child is the first argument of a test program that is to be a mutant.
const child = "mutant-plugin"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == child {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := Main(ctx, os.Args[2:], os.Stderr, served()...)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func program(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "'" + exe + "' " + child
}

// TestMatrix: no check without a mutant, and no mutant without a check.
func TestMatrix(t *testing.T) {
	var ids, names []string
	for _, c := range plugin.Catalogue() {
		ids = append(ids, c.ID)
	}
	caught := map[string]bool{}
	for _, m := range All() {
		if slices.Contains(names, m.Name) {
			t.Errorf("two mutants have the name %s", m.Name)
		}
		names = append(names, m.Name)
		for _, id := range append([]string{m.Caught}, m.Also...) {
			if !slices.Contains(ids, id) {
				t.Errorf("%s: no check has the id %s", m.Name, id)
			}
		}
		if (m.Change == nil) == (m.Fault == "") {
			t.Errorf("%s: expected either Change or Fault", m.Name)
		}
		caught[m.Caught] = true
	}
	for _, id := range ids {
		if !caught[id] {
			t.Errorf("no mutant is caught by %s", id)
		}
	}
}

// TestReferenceConforms: the suite finds nothing in a correct plugin.
func TestReferenceConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	timing := Timing()
	report, err := plugin.Run(t.Context(), Mutant{}.Subject(program(t)), plugin.Options{Timing: &timing})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Outcome != conformance.Passed {
			t.Errorf("%s: %s %s %v", r.ID, r.Outcome, r.Reason, r.Evidence)
		}
	}
}

// Subject is the variant as the suite gets it. The program is the words that start Main.
func (v Variant) Subject(program string) plugin.Subject {
	s := Mutant{Name: v.Name}.Subject(program)
	if v.Abstract {
		s.Endpoint = fmt.Sprintf("unix:///@kmsharness-%s-%d", v.Name, os.Getpid())
	}
	return s
}

// TestVariantsConform: the suite finds nothing in correct plugins of unusual shape.
func TestVariantsConform(t *testing.T) {
	if os.Getenv("KMSHARNESS_VARIANTS") == "" {
		t.Skip("minutes: make nightly STAGES=variants")
	}
	for _, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			timing := Timing()
			report, err := plugin.Run(t.Context(), v.Subject(program(t)), plugin.Options{Timing: &timing})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Outcome != conformance.Passed && r.Outcome != conformance.NotSupported {
					t.Errorf("%s: %s %s %v", r.ID, r.Outcome, r.Reason, r.Evidence)
				}
			}
		})
	}
}

// TestEachCapabilityOff: without one of its capabilities the suite finds nothing in a correct plugin, and says what it could not judge.
func TestEachCapabilityOff(t *testing.T) {
	if os.Getenv("KMSHARNESS_VARIANTS") == "" {
		t.Skip("minutes: make nightly STAGES=variants")
	}
	for off, change := range map[conformance.Capability]func(*testing.T, *plugin.Subject){
		plugin.Command:   runsAlready,
		plugin.HookBreak: func(_ *testing.T, s *plugin.Subject) { s.Hooks.Break = "" },
		plugin.HookModes: func(_ *testing.T, s *plugin.Subject) {
			s.Hooks.Break = strings.ReplaceAll(s.Hooks.Break, "{mode}", plugin.ModeFail)
		},
		plugin.HookCount:      func(_ *testing.T, s *plugin.Subject) { s.Hooks.Count = "" },
		plugin.Addresses:      func(_ *testing.T, s *plugin.Subject) { s.Addresses = nil },
		plugin.SecondInstance: runsAlready,
		plugin.HookSlow:       func(_ *testing.T, s *plugin.Subject) { s.Hooks.Slow = "" },
		plugin.HookRotate:     func(_ *testing.T, s *plugin.Subject) { s.Hooks.Rotate = "" },
		plugin.SocketFile: func(_ *testing.T, s *plugin.Subject) {
			s.Endpoint = fmt.Sprintf("unix:///@kmsharness-off-%d", os.Getpid())
		},
	} {
		t.Run(string(off), func(t *testing.T) {
			s := Mutant{}.Subject(program(t))
			change(t, &s)
			timing := Timing()
			report, err := plugin.Run(t.Context(), s, plugin.Options{Timing: &timing})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(report.Capabilities, off) || len(report.With(conformance.NotSupported)) == 0 {
				t.Errorf("capabilities %v: expected all but %s, and checks that are not supported without it", report.Capabilities, off)
			}
			for _, r := range report.Results {
				if r.Outcome != conformance.Passed && r.Outcome != conformance.NotSupported {
					t.Errorf("%s: %s %s %v", r.ID, r.Outcome, r.Reason, r.Evidence)
				}
			}
		})
	}
}

// runsAlready starts the correct plugin, and leaves s its endpoint and the hooks.
func runsAlready(t *testing.T, s *plugin.Subject) {
	state := t.TempDir()
	socket := filepath.Join(state, "kms.sock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, child, "serve", "--listen", "unix://"+socket, "--state", state)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test ends it
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		_, err := os.Stat(socket)
		return err == nil, nil
	}); err != nil {
		t.Fatalf("wait for the plugin: %v", err)
	}
	inState := func(hook string) string { return strings.ReplaceAll(hook, "{state}", state) }
	*s = plugin.Subject{Endpoint: "unix://" + socket, Hooks: plugin.Hooks{Break: inState(s.Hooks.Break), Slow: inState(s.Hooks.Slow),
		Restore: inState(s.Hooks.Restore), Rotate: inState(s.Hooks.Rotate), Count: inState(s.Hooks.Count)}}
}

// TestOneCauseLeavesTheRest: a plugin that is lost in a check is started again, without the socket file that the last process left, so that the
// checks that follow are judged. Its finding says what follows from the loss.
func TestOneCauseLeavesTheRest(t *testing.T) {
	for name, wrong := range map[string]bool{"empty-ciphertext-breaks-status": false, "empty-ciphertext-ends": false, "parser-error-ends": false, "parser-errors-ignored": true} {
		m, _ := Find(name)
		timing := Timing()
		report, err := plugin.Run(t.Context(), m.Subject(program(t)), plugin.Options{
			Timing: &timing, Selection: conformance.Selection{Focus: regexp.MustCompile("^(KMS2-ENCRYPT-ROUND-TRIP|KMS2-HOSTILE-KEEPS-SERVING|KMS2-LIFECYCLE-STOPS|" + m.Caught + ")$")},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if want := r.ID != m.Caught; (r.Outcome == conformance.Passed) != want {
				t.Errorf("%s: %s: %s %s %v", name, r.ID, r.Outcome, r.Reason, r.Evidence)
			}
			if ends := "Every other call fails until"; r.ID == m.Caught && strings.Contains(r.Consequence, ends) == wrong {
				t.Errorf("%s: %v, consequence: %s", name, r.Evidence, r.Consequence)
			}
		}
	}
}

// TestPreflightStartsTheCommand, and names the broken rule.
func TestPreflightStartsTheCommand(t *testing.T) {
	for name, want := range map[string]string{"": "usable, 10 checks passed", "version-v1": "NOT usable: KMS2-STATUS-VERSION"} {
		text, ok, err := plugin.Preflight(t.Context(), Mutant{Name: name}.Subject(program(t)), 5*time.Second, nil)
		if err != nil || ok != (name == "") || !strings.HasPrefix(text, want) {
			t.Errorf("%q: %q, %v, %v, want %q", name, text, ok, err, want)
		}
	}
}

// TestMutantsAreCaught: by the intended check. That no other check fails is judged by make mutants BACKEND=plugin, which runs the whole suite.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	exe := program(t)
	try := func(m Mutant) error {
		report, err := m.Try(t.Context(), exe, true)
		if err == nil && len(report.With(conformance.Failed)) != 1 {
			err = fmt.Errorf("%s did not fail: %+v", m.Caught, report.Results)
		}
		return err
	}
	all := All()
	errs := make([]error, len(all))
	var group errgroup.Group // not t.Parallel, which is bounded by the number of processors: mutants wait for deadlines
	group.SetLimit(sideBySide)
	for i, m := range all {
		group.Go(func() error {
			errs[i] = try(m)
			return nil
		})
	}
	_ = group.Wait() // no error: errs has them
	for i, m := range all {
		if errs[i] == nil {
			continue
		}
		t.Logf("%s is tried again, alone: %v", m.Name, errs[i])
		if err := try(m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
