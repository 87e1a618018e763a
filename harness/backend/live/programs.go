package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
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
	if older, ok := strings.CutPrefix(name, previousRelease); ok {
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
		if _, err := p.Find(ctx, previousRelease+undertest.ProgramOf(program)); err != nil {
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
		" --metrics-address={metricsAddress} --contract={contract} --operator={operator}" + unknownToPrevious + " --alternatives={alternatives}"
	DefaultAggregator = "kms-health-aggregator --kubeconfig={kubeconfig} --interval={interval} --operator={operator}" +
		" --metrics-address={metricsAddress} --leader-elect={leaderElect} --leader-elect-identity={instance}" +
		" --degraded-inertia={degradedInertia} --cluster-operator={clusterOperator}" + unknownToPrevious + " --alternatives={alternatives}"
	// The previous release (assets.Previous) does not get the flags from the first of these on: its reporters use their kubeconfig.
	unknownToPrevious = " --connectivity={connectivity}"
	previousRelease   = "previous/"
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

func orDefault(text, fallback string) string {
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
