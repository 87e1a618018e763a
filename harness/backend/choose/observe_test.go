package choose_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/observe"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// besides is a backend whose environments are observed from outside while a scenario runs.
type besides struct {
	choose.Backend
	t    *testing.T
	last *watched
}

// watched is an environment, and what its observer saw and asked for.
type watched struct {
	*live.Environment
	log     *history.Log
	stop    context.CancelFunc
	ended   chan error
	once    sync.Once
	mu      sync.Mutex
	methods map[string]int
}

func (b *besides) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	env, err := b.Backend.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	w := &watched{Environment: env.(*live.Environment), log: history.NewLog(nil), ended: make(chan error, 1), methods: map[string]int{}}
	config, err := observer(ctx, w.ControlPlane())
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, w} })
	if err := ready(ctx, config); err != nil {
		return nil, err
	}
	run := w.RunMetadata()
	o := observe.Options{REST: config, Operator: core.Operators()[0], NodeSelector: "", Progress: func(line string) { b.t.Log(line) },
		Run: history.Run{Scenario: "observe", Backend: "cluster", Timing: run.Timing, Tolerance: run.Tolerance, Contract: cmp.Or(run.Contract, history.FormConditions), SourceOnly: run.SourceOnly}}
	var following context.Context
	following, w.stop = context.WithCancel(ctx)
	go func() { w.ended <- observe.Record(following, o, w.log) }()
	b.last = w
	return w, nil
}

// Finish ends the observation with the run.
func (w *watched) Finish(ctx context.Context) error {
	w.once.Do(func() {
		w.stop()
		if err := <-w.ended; err != nil {
			w.ended <- err
		}
		close(w.ended)
	})
	return w.Environment.Finish(ctx)
}

type counted struct {
	http.RoundTripper
	in *watched
}

func (c counted) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.in.mu.Lock()
	c.in.methods[r.Method]++
	c.in.mu.Unlock()
	return c.RoundTripper.RoundTrip(r)
}

// observer has the credential of the ServiceAccount of the manifest, and its rights.
func observer(ctx context.Context, c *cluster.ControlPlane) (*rest.Config, error) {
	admin, err := c.Credentials.RESTConfig("kmsharness-admin", []string{"system:masters"}, c.ClientServer)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	text, err := manifests.Render("observe-job.yaml", manifests.Options{})
	if err != nil {
		return nil, err
	}
	all, err := manifests.Decode(text)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if kind := o.GetKind(); kind == "Job" || o.GetNamespace() == "openshift-config-managed" {
			continue // it runs here, and no operator has keys
		}
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if _, err := client.Resource(gvr).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			return nil, err
		}
	}
	accounts, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	token, err := accounts.CoreV1().ServiceAccounts("kmsharness-observe").CreateToken(ctx, "kmsharness-observe", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of the observer: %w", err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return config, nil
}

// ready returns when the kubelets, where there are any, say that API servers and what runs beside them are ready: they say so some seconds after it is true.
func ready(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
		return err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			all := slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses)
			return len(all) < 2 || slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return !c.Ready })
		}), nil
	})
}

// shared are the ids that failed, of those that what was observed can judge, each once.
func shared(failed []string, seen check.Verdict) (ids []string) {
	for _, r := range seen.Invariants {
		if r.Judged > 0 && slices.Contains(failed, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// hangs is longer than a scenario of the catalogue: an observer has no journals, and needs some writes in a row.
const hangs = `
apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: observed, title: "A plugin hangs after a while.", area: plugin}
spec:
  steps:
  - holds: reports.size() == 3
    for: 25s
  - inject: {plugin: {node: cp-2}, method: Status, fault: hang}
  - holds: reports.size() == 3
    for: 8s
  - release: {plugin: {node: cp-2}}
  - expect: rollup.degraded.status == "False"
    within: recovery
`

// TestObserveBeside: who only reads beside a scenario judges as the run does, and asks for nothing but reads. On kind with KMSHARNESS_OBSERVE=kind; the
// programs are those of KMSHARNESS_BIN.
func TestObserveBeside(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly STAGES=unit")
	}
	name := cmp.Or(os.Getenv("KMSHARNESS_OBSERVE"), local.Name)
	o := choose.Options{}
	if name == local.Name {
		assetstest.Find(t)
		o.Assets = assets.Options{LocalOnly: true}
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parser.Parse("observed.yaml", []byte(hangs))
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	run := func(line string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	run("CGO_ENABLED=0 go build -o " + programs + " ../../../scenarios/mutants/cmd/mutant-reporter ../../../cmd/kms-health-reporter")
	reporter := " --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --jitter={jitter} --read-timeout={readTimeout} --write-timeout={writeTimeout}" +
		" --metrics-address={metricsAddress} --contract={contract} --operator={operator}"
	for _, c := range []struct{ name, program, args string }{
		{name: "right"},
		{"only changes", "mutant-reporter", " --mutation=write-on-change --interval={interval}"},
		{"without a deadline", "mutant-reporter", " --mutation=no-rpc-deadline --interval={interval}"},
		{"every second tick", "kms-health-reporter", " --interval=2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := o
			if c.program != "" {
				of.Reporter = undertest.Reporter{Command: filepath.Join(programs, c.program) + c.args + reporter}
				if name != local.Name {
					of.Reporter = undertest.Reporter{Image: "kmsharness/" + c.program + ":test", Args: c.args + reporter}
					run("tar -C " + programs + " -c . | docker import --change 'ENTRYPOINT [\"/" + c.program + "\"]' - " + of.Reporter.Image)
				}
			}
			inner, err := choose.New(name, of)
			if err != nil {
				t.Fatal(err)
			}
			b := &besides{Backend: inner, t: t}
			x := engine.Execution{Out: t.TempDir(), Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, KeepGoing: true}}
			r := engine.Execute(t.Context(), b, s, x)
			if r.Status == result.Inconclusive {
				r = engine.ExecuteAgain(t.Context(), b, s, x)
			}
			if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			if b.last == nil {
				t.Fatal(r.Text())
			}
			if err := <-b.last.ended; err != nil {
				t.Fatal(err)
			}
			seen := check.Run(b.last.log.Events())
			var all, observed []string
			for _, f := range r.Failures {
				all = append(all, f.ID)
			}
			for _, r := range seen.Invariants {
				if r.Status == check.Failed {
					observed = append(observed, r.ID)
				}
			}
			inRun := shared(all, seen)
			var shown strings.Builder
			_ = check.Print(&shown, seen)
			t.Logf("in the run %v, observed %v, requests %v", inRun, observed, b.last.methods)
			if !slices.Equal(inRun, observed) || (len(observed) > 0) != (c.program != "") {
				t.Errorf("failed in the run: %v, as observed: %v\n%s\n%s", inRun, observed, r.Text(), shown.String())
			}
			if len(b.last.methods) != 1 || b.last.methods[http.MethodGet] < 20 {
				t.Errorf("requests %v", b.last.methods)
			}
			for _, id := range []string{"CADENCE", "FORMAT", "ROLLUP-TRUTH"} {
				if !slices.ContainsFunc(seen.Invariants, func(r check.Result) bool { return r.ID == id && r.Judged > 0 }) {
					t.Errorf("%s was not judged\n%s", id, shown.String())
				}
			}
		})
	}
}
