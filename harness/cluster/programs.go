package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// EnvPrograms names a directory with this project's programs.
const EnvPrograms = "KMSHARNESS_BIN"

// Programs finds executables: a path as it is; this project's programs in EnvPrograms, beside the running executable, or
// built from the module that the working directory is in; anything else on PATH.
type Programs struct {
	dir      string // receives what is built
	progress func(string)
	// PluginArgs are further arguments of every fake plugin.
	PluginArgs []string
	// Plugin takes the fake plugin's place, which then stands in front of it.
	Plugin undertest.Plugin

	mu    sync.Mutex
	found map[string]string
}

// NewPrograms builds what it does not find into dir.
func NewPrograms(dir string, progress func(string)) *Programs {
	return &Programs{dir: dir, progress: progress, found: map[string]string{}}
}

// ownPrograms are this project's.
var ownPrograms = []string{"kms-health-reporter", "kms-health-aggregator", "encryption-operator", "fake-kms-plugin", "kmsharness-supervisor", "kmsharness-proxy", "kmsharness-front"}

// own reports whether a name is that of one of this project's programs.
func own(name string) bool { return slices.Contains(ownPrograms, name) }

func (p *Programs) Find(ctx context.Context, name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if path := p.found[name]; path != "" {
		return path, nil
	}
	path, err := p.search(ctx, name)
	if err != nil {
		return "", fmt.Errorf("find the program %s: %w", name, err)
	}
	p.found[name] = path
	return path, nil
}

func (p *Programs) search(ctx context.Context, name string) (string, error) {
	if older, ok := strings.CutPrefix(name, PreviousRelease); ok {
		return p.previous(ctx, older)
	}
	path, err := locate(name)
	if errors.Is(err, errNotBuilt) {
		return p.build(ctx, name)
	}
	return path, err
}

// FindPrevious finds or builds the programs of the previous release that a scenario names, before anything is started.
func (p *Programs) FindPrevious(ctx context.Context, s *scenario.Scenario) error {
	for _, role := range s.Previous() {
		program := map[string]string{history.RoleReporter: DefaultReporter, history.RoleAggregator: DefaultAggregator, history.RoleOperator: DefaultOperator}[role]
		if _, err := p.Find(ctx, PreviousRelease+undertest.ProgramOf(program)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Programs) previous(ctx context.Context, name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	programs, err := assets.Previous(ctx, root, p.progress)
	return programs.Path(name), err
}

// build builds a program of this module from the source tree that the working directory is in.
func (p *Programs) build(ctx context.Context, name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	p.progress("building " + name)
	path := filepath.Join(p.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // some run in images without libraries
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/%s in %s: %w\n%s", name, root, err, out)
	}
	return path, nil
}

// The commands of this project's own reporter, aggregator and operator.
const (
	DefaultReporter = "kms-health-reporter --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig}" +
		" --interval={interval} --jitter={jitter} --read-timeout={readTimeout} --write-timeout={writeTimeout}" +
		" --metrics-address={metricsAddress} --contract={contract} --operator={operator}" + UnknownToPrevious + " --alternatives={alternatives}"
	DefaultAggregator = "kms-health-aggregator --kubeconfig={kubeconfig} --interval={interval} --operator={operator}" +
		" --metrics-address={metricsAddress} --leader-elect={leaderElect} --leader-elect-identity={instance}" +
		" --degraded-inertia={degradedInertia} --cluster-operator={clusterOperator}" + UnknownToPrevious + " --alternatives={alternatives}"
	// The previous release (assets.Previous) does not get the flags from the first of these on: its reporters use their kubeconfig.
	UnknownToPrevious = " --connectivity={connectivity}"
	PreviousRelease   = "previous/"
	// DefaultOperator is the command of this project's operator, with the times that scenarios are written for. An API server that is probed every 5 s
	// (readinessEvery) asks its plugin again when the last answer is 20 s old (kmsPluginHealthzPositiveTTL in k8s.io/apiserver): to settle
	// takes that, a probe and a reserve. Few revisions are kept, so that pruning is seen.
	DefaultOperator = "encryption-operator --kubeconfig={kubeconfig} --operator={operator} --encrypt={encrypt} --interval={interval} --before-kms={beforeKMS}" +
		" --settle=30s --retry=2s --keep=3 --check-timeout={checkTimeout}"
	// DefaultPreflight is the command of the pre-flight pod of this project's operator.
	DefaultPreflight = "encryption-operator kms-preflight --kms-sockets={sockets} --kms-call-timeout={callTimeout} --timeout={checkTimeout} --poll=250ms" +
		" --config-hash={configHash} --pod-name={podName} --pod-namespace={podNamespace} --kubeconfig={kubeconfig}"
	// QuickLease is what the aggregator is given besides, where reporters write more often than a lease of production ends.
	QuickLease = " --leader-elect-lease-duration=2s --leader-elect-renew-deadline=1500ms --leader-elect-retry-period=250ms"
	// What they are given besides, where a topology names an aggregator's profile or a migrator, or keeps read keys.
	ProfiledAggregator = " --profile={aggregatorProfile}"
	MigratingOperator  = " --migrator={migrator}"
	KeepingOperator    = " --keep-read-key"
	// What they are given besides, where reporters stream.
	StreamingReporter   = " --publish={publish} --aggregators={aggregators}"
	StreamingAggregator = " --stream-address={streamAddress} --stream-certificate={streamCertificate} --stream-key={streamKey}" +
		" --stream-client-ca={streamClientCA} --stream-contract={contract}"
)

func CommandOr(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}

// readyPoll is how often a starting process is asked whether it answers.
const readyPoll = 10 * time.Millisecond

// child is a Unit that is a process of this machine.
type child struct {
	*process.Unit
	// spec is asked at every start: sockets and files may have changed.
	spec func(context.Context) (process.Spec, error)
	// ready is nil for a process that is ready as soon as it runs.
	ready process.Probe
}

func (c *child) Start(ctx context.Context) error {
	p, err := c.Launch(ctx, c.spec)
	if err != nil || c.ready == nil {
		return err
	}
	return p.WaitReady(ctx, readyPoll, c.ready)
}

// NameOf is the name of a process for its log file and its changes: "plugin-cp-1-1", "aggregator-2".
func NameOf(p history.Process) string {
	name := p.Role
	if p.APIServer != "" {
		name = p.APIServer + "-" + p.Role
	}
	if p.Node != "" {
		name += "-" + p.Node
	}
	if p.KeyID != "" {
		name += "-" + p.KeyID
	}
	if p.Instance != 0 {
		name += fmt.Sprintf("-%d", p.Instance)
	}
	return name
}

// modulePath is where the programs are built from, if nobody built them before.
const modulePath = "github.com/kmsharness/kmsharness"

// errNotBuilt: a program of this project is nowhere, but may be built.
var errNotBuilt = errors.New("it is not beside this executable")

// locate is the path of a program that exists. The error says where it was looked for.
func locate(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return executable(name)
	}
	if !own(name) {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("no executable file of this name is on PATH (%s), and no program of this project has it", os.Getenv("PATH"))
		}
		return path, nil
	}
	if dir := os.Getenv(EnvPrograms); dir != "" {
		path, err := executable(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", EnvPrograms, dir, err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		if path, err := executable(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return "", errNotBuilt
}

// executable is a path at which there is a program.
func executable(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err == nil {
		return found, nil
	}
	if absolute, failed := filepath.Abs(path); failed == nil {
		path = absolute
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s", path)
	case errors.Is(err, syscall.EISDIR):
		return "", fmt.Errorf("%s is a directory", path)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s is not executable", path)
	}
	return "", err
}

// moduleRoot is the directory of this project's go.mod, if the working directory is in it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		text, failed := os.ReadFile(filepath.Join(dir, "go.mod"))
		if failed == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return dir, nil
		}
		if failed == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("%w, and cannot be built because the working directory is not in the module %s: set %s to the directory that has it (make build)",
		errNotBuilt, modulePath, EnvPrograms)
}

// Findable returns an error if a program cannot be found on this machine. Programs of this project that are still to be built pass.
func Findable(program, _ string) error {
	_, err := locate(program)
	if errors.Is(err, errNotBuilt) {
		_, err = moduleRoot()
	}
	return err
}

// CheckPrograms calls check for the programs of reporter and aggregator that a template names, with the program of this project that each
// replaces. The programs of an operator, of hooks, and of a plugin under test without an image run on this machine and must be there. A name with a
// placeholder is known only when the program is started, and passes.
func CheckPrograms(s undertest.System, check func(program, replaced string) error) error {
	if s.Operator.MountSockets && os.Geteuid() != 0 {
		return undertest.Wrong("operator.mountSockets", "a mount namespace needs root: run as root, or let the pre-flight program take its socket from {sockets}")
	}
	here := [][2]string{
		{"operator.command", s.Operator.Command}, {"operator.preflight", s.Operator.Preflight}, {"plugin.break", s.Plugin.Break}, {"plugin.restore", s.Plugin.Restore}, {"plugin.rotate", s.Plugin.Rotate},
	}
	if s.Plugin.Image == "" {
		here = append(here, [2]string{"plugin.command", s.Plugin.Command})
	}
	for _, field := range here {
		if err := checkProgram(field[0], field[1], "", Findable); err != nil {
			return err
		}
	}
	if err := checkProgram("reporter.command", s.Reporter.Command, DefaultReporter, check); err != nil {
		return err
	}
	return checkProgram("aggregator.command", s.Aggregator.Command, DefaultAggregator, check)
}

// checkProgram calls check for the program of the template in a field, with that of the template that it replaces.
func checkProgram(field, template, replaced string, check func(program, replaced string) error) error {
	program := undertest.ProgramOf(template)
	if program == "" || command.HasPlaceholder(program) {
		return nil
	}
	if err := check(program, undertest.ProgramOf(replaced)); err != nil {
		return undertest.Wrong(field, "program %q: %w", program, err)
	}
	return nil
}

// Own are the programs of this project that are used where the templates name no others.
func Own(s undertest.System) []string {
	programs := []string{PluginProgram}
	for _, text := range []string{CommandOr(s.Reporter.Command, DefaultReporter), CommandOr(s.Aggregator.Command, DefaultAggregator), CommandOr(s.Operator.Command, DefaultOperator), CommandOr(s.Operator.Preflight, DefaultPreflight)} {
		if name := undertest.ProgramOf(text); own(name) && !slices.Contains(programs, name) {
			programs = append(programs, name)
		}
	}
	return programs
}
