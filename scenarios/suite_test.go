package scenarios_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/scenarios"
)

// settings of the suite, from the command line of its processes: kmsharness e2e passes them on.
var settings struct {
	backend, dir, out, progress string
	seed                        int64
	system, flags               string
	sut                         choose.Options
	artifacts                   string
	contract, publish           string
	notAfter                    string
	again, keepGoing, verbose   bool
}

func TestMain(m *testing.M) {
	flag.StringVar(&settings.backend, "kmsharness.backend", "", "backend that the catalogue runs on; empty: the suite is skipped")
	flag.StringVar(&settings.dir, "kmsharness.dir", ".", "folder that paths in other flags are relative to")
	flag.StringVar(&settings.out, "kmsharness.out", "", "output folder")
	flag.StringVar(&settings.progress, "kmsharness.progress", "", "file that lines of progress are appended to")
	flag.Int64Var(&settings.seed, "kmsharness.seed", 1, "seed")
	flag.StringVar(&settings.notAfter, "kmsharness.not-after", "", "when the last scenario may begin, as in RFC 3339; empty: at any time")
	flag.BoolVar(&settings.again, "kmsharness.again", false, "the scenarios are inconclusive, and judged again")
	flag.StringVar(&settings.publish, "kmsharness.publish", scenario.PublishApply, "way of reports to the API server")
	flag.StringVar(&settings.contract, "kmsharness.contract", scenario.ContractConditions, "wire form of the reports, of scenarios that are not about one")
	flag.StringVar(&settings.artifacts, "kmsharness.artifacts", string(engine.ArtifactsOnFailure), "when artifacts are collected")
	flag.StringVar(&settings.system, "kmsharness.system", "", "file that describes the system under test; empty: this project's")
	flag.StringVar(&settings.flags, "kmsharness.flags", "", "flags of kmsharness run that judge the same system under test alike")
	flag.BoolVar(&settings.sut.Strict, "kmsharness.strict", false, "house rules fail every program")
	flag.BoolVar(&settings.keepGoing, "kmsharness.keep-going", false, "go on after a failed expectation")
	flag.BoolVar(&settings.verbose, "kmsharness.verbose", false, "show each step at once")
	flag.Parse()
	if settings.backend != "" { // the package's other tests read its files, which are not there where the suite runs
		if err := flag.Set("test.run", "^TestCatalogue$"); err != nil {
			panic(err) // go test without its own flag
		}
		if err := os.Chdir(settings.dir); err != nil { // Ginkgo runs its processes beside the suite
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestCatalogue runs the catalogue. Under plain go test there is no backend to run it on, and the catalogue is only
// parsed (TestCatalogueParses).
func TestCatalogue(t *testing.T) {
	if settings.backend == "" {
		t.Skip("the catalogue runs on a backend: use make e2e")
	}
	// The suite must not outlive its runner, not even kill -9 of it: its environments would stay behind.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		t.Fatalf("tie the suite to its runner: %v", err)
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "catalogue")
}

// notAfter is when the last scenario may begin; zero: at any time.
var notAfter time.Time

// booted is the backend of this process; the control planes that it keeps serve one spec after another.
var booted backend.Backend

// The first process announces what the run is about to do before any process begins with it.
var _ = SynchronizedBeforeSuite(func() {
	setUp()
	if settings.again { // the first try announced them
		return
	}
	selected := types.MustParseLabelFilter(GinkgoLabelFilter()) // Ginkgo has accepted it
	all := slices.DeleteFunc(catalogue(), func(s *scenario.Scenario) bool { return !selected(scenarios.Labels(s)) })
	Expect(engine.Announce(booted, all, engine.Execution{Out: settings.out, Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Seed: settings.seed}})).To(Succeed())
}, func() {
	if booted == nil {
		setUp()
	}
})

func setUp() {
	var err error
	if settings.notAfter != "" {
		notAfter, err = time.Parse(time.RFC3339, settings.notAfter)
		Expect(err).NotTo(HaveOccurred())
	}
	if settings.system != "" {
		settings.sut.System, err = undertest.Read(settings.system)
		Expect(err).NotTo(HaveOccurred())
	}
	settings.sut.Streaming = settings.publish == scenario.PublishStream
	settings.sut, err = settings.sut.InForm(settings.contract)
	Expect(err).NotTo(HaveOccurred())
	booted, err = choose.New(settings.backend, settings.sut)
	Expect(err).NotTo(HaveOccurred())
}

// What a process booted ends with its last spec. (A DeferCleanup of the first process would wait for all others first, and its control
// planes would idle beside theirs.)
var _ = AfterSuite(func(ctx context.Context) {
	if booted != nil {
		Expect(booted.Close(ctx)).To(Succeed())
	}
})

var _ = Describe("catalogue", func() {
	selected := types.MustParseLabelFilter(GinkgoLabelFilter()) // Ginkgo has accepted it
	plane := func(s *scenario.Scenario) string { return choose.Plane(settings.backend, s) }
	runs := func(s *scenario.Scenario) bool { return selected(scenarios.Labels(s)) }
	for n, g := range groups(catalogue(), plane, runs) {
		// Ginkgo sorts groups by code location, and runs what is Serial at the end, one after another: API servers beside kube-apiserver are up to
		// nine, and four such control planes at the same time leave two cores nothing to keep a bound with.
		order := []any{types.CodeLocation{FileName: "catalogue", LineNumber: n + 1}, Ordered, ContinueOnFailure}
		if g.Aggregated {
			order = append(order, Serial)
		}
		Context(g.Name, append(order, func() {
			for _, s := range g.Scenarios {
				It(s.Name, Label(scenarios.Labels(s)...), func(ctx context.Context) { run(ctx, s) })
			}
		})...)
	}
})

// run executes one scenario and turns its result into the spec's.
func run(ctx context.Context, s *scenario.Scenario) {
	execute := engine.Execute
	if settings.again {
		execute = engine.ExecuteAgain
	}
	fit := settings.sut.Fit(s, booted.Name())
	steps, preparing := progress(s)
	r := execute(ctx, booted, fit.Scenario, engine.Execution{
		NotAfter: notAfter, Unsupported: fit.Unsupported, Notes: fit.Notes,
		Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: settings.seed,
			Reproduce: reproduce(s), Progress: steps, SourceOnly: settings.sut.SourceOnly(), BackOff: settings.sut.BackOff(), Plugin: settings.sut.Plugin.Implementation(), Operator: settings.sut.Operator.Implementation(), KeepGoing: settings.keepGoing,
		},
		Out: settings.out, Artifacts: engine.Artifacts(settings.artifacts), Preparing: preparing,
	})
	switch r.Status {
	case result.Passed:
		say("%-40s passed in %.1fs", s.Name, r.Took.Seconds())
	case result.NotBegun:
		say("%-40s not begun", s.Name)
		Skip(strings.Join(r.Reasons, "; "))
	case result.Inconclusive, result.Interrupted: // no failure that --fail-fast should end the run for
		say("%-40s %s in %.1fs", s.Name, strings.ToUpper(string(r.Status)), r.Took.Seconds())
		Skip(r.Text())
	case result.NotSupported:
		say("%-40s not supported", s.Name)
		Skip("not supported on " + r.Backend + ": " + strings.Join(r.Reasons, "; "))
	default:
		say("%-40s %s in %.1fs", s.Name, strings.ToUpper(string(r.Status)), r.Took.Seconds())
		if r.Unsuitable { // as it would be of every other scenario
			say("%s", strings.Join(r.Reasons, "; "))
			AbortSuite(r.Text())
		}
		Fail(r.Text())
	}
}

// say tells whoever started the suite how far it is. Ginkgo keeps what its processes print until a spec has ended.
func say(format string, args ...any) {
	if settings.progress == "" {
		return
	}
	f, err := os.OpenFile(settings.progress, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return // a verdict does not depend on it
	}
	defer f.Close()
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	_, _ = f.WriteString(line + "\n") // in one write, so that lines of several processes do not mix
}

// silence is how long a scenario may run before its steps are told as well: most have ended by then.
const silence = time.Minute

// progress goes to Ginkgo's writer, which is shown for specs that fail. How a scenario is prepared is told at once, and so are the steps of one that
// takes longer than silence.
func progress(s *scenario.Scenario) (steps, preparing func(string)) {
	began := time.Now()
	write := func(line string) { fmt.Fprintf(GinkgoWriter, "%s: %s\n", s.Name, line) }
	tell := func(line string) {
		write(line)
		say("%-40s %s", s.Name, line)
	}
	steps = func(line string) {
		if !settings.verbose && time.Since(began) < silence {
			write(line)
			return
		}
		tell(line)
	}
	return steps, tell
}

func reproduce(s *scenario.Scenario) string {
	args := []string{"kmsharness", "run", s.File}
	if s.File == "" { // written in Go
		args = []string{"kmsharness", "e2e", "--labels", "name:" + s.Name}
	}
	args = append(args, "--backend", settings.backend, "--seed", fmt.Sprint(settings.seed))
	args = append(args, s.FormFlags()...)
	if settings.flags != "" {
		args = append(args, settings.flags)
	}
	return strings.Join(args, " ")
}

// catalogue is every file, and what is written in Go. A file that does not parse fails the suite before it begins.
func catalogue() []*scenario.Scenario {
	all, err := scenarios.Load()
	if err == nil {
		if all, err = scenario.InForms(all, settings.contract); err == nil {
			all, err = scenario.Published(all, settings.publish)
		}
	}
	if err != nil {
		panic("the catalogue does not parse:\n" + err.Error()) // Ginkgo builds its tree before any test can fail
	}
	return all
}
