package virtual

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/matchers"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// world is three nodes with plugins, reporters and API servers, a load balancer and an aggregator: the project's own programs, by their own
// command lines.
type world struct {
	*testing.T
	dir      string
	machine  *machine
	cluster  *ControlPlane
	kms      *cluster.RemoteKMS
	balancer *netfault.LoadBalancer
	plugins  map[string]*cluster.Plugin
	units    map[string]cluster.Unit
	history  strings.Builder
}

func in(t *testing.T, seed uint64, f func(ctx context.Context, w *world)) (log string) {
	t.Helper()
	types, err := store.LoadTypes(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	dir, remove, err := bubble.MakeFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = remove() }() // what is left is in a temporary folder
	bubble.Test(t, seed, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		defer end()
		w := &world{T: t, dir: dir, plugins: map[string]*cluster.Plugin{}, units: map[string]cluster.Unit{}}
		n := network.New(seed)
		w.machine = newMachine(n, seed, Programs())
		w.machine.Listen(func(at time.Time, payload any) {
			p := payload.(*history.Process)
			fmt.Fprintln(&w.history, at.Format(time.StampMicro), p.Role, p.Node, p.State, p.Detail, p.Output)
		})
		defer func() {
			w.machine.KillAll()
			if w.cluster != nil {
				_ = w.cluster.Close(ctx)
			}
			if w.balancer != nil {
				_ = w.balancer.Close()
			}
			if w.kms != nil {
				w.kms.Close()
			}
			n.Close()
			log = w.history.String()
			for _, node := range nodes() {
				text, _ := os.ReadFile(filepath.Join(dir, "audit-"+node+".jsonl"))
				log += string(text)
			}
			if t.Failed() {
				t.Log(w.history.String())
			}
		}()
		w.boot(ctx, types, seed)
		f(ctx, w)
	})
	return log
}

func nodes() []string { return []string{"cp-1", "cp-2", "cp-3"} }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) boot(ctx context.Context, types *store.Types, seed uint64) {
	w.Helper()
	var err error
	w.cluster, err = newControlPlane(w.machine, w.dir, w.dir, types, cluster.AuditPolicy(), time.Second)
	w.must(err)
	w.must(w.cluster.etcd.Start(ctx))
	w.kms, err = cluster.StartRemoteKMS(ctx, w.machine, w.dir, w.dir)
	w.must(err)
	w.balancer, err = netfault.NewLoadBalancer(w.machine.network.Host("lb"), "load balancer", time.Second)
	w.must(err)
	for _, node := range nodes() {
		w.must(os.MkdirAll(filepath.Join(w.dir, node), 0o700))
		g, err := cluster.HostPlugin{Node: node, KeyID: "1", Dir: filepath.Join(w.dir, node), Logs: w.dir, Root: w.dir, KMS: w.kms, Profile: &cluster.Profile{}}.On(w.machine)
		w.must(err)
		w.must(g.Start(ctx))
		w.plugins[node] = g
		s, err := w.cluster.Add(controlplane.ServerSpec{Name: node, Encryption: cluster.Plugins("1").Config(func(keyID string) string { return cluster.HostSocket(filepath.Join(w.dir, node), keyID) })})
		w.must(err)
		w.must(s.Start(ctx, controlplane.Ready))
		w.must(w.balancer.Add(node, s.Info().Addr))
	}
	objects, err := manifests.Objects(manifests.Options{})
	w.must(err)
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{"managementState": "Managed"}}}
	co := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": map[string]any{"name": "kube-apiserver"}, "spec": map[string]any{}}}
	objects = append(objects, cr, co)
	for _, node := range nodes() {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": node, "labels": map[string]any{"node-role.kubernetes.io/control-plane": ""}}}})
	}
	w.install(ctx, objects...)
	for _, node := range nodes() {
		kubeconfig := w.kubeconfig("reporter-"+node, contract.ReporterIdentity(node), []string{contract.ReporterGroup}, "https://"+node+securePort)
		w.start(ctx, history.Process{Role: history.RoleReporter, Node: node}, "kms-health-reporter", "--kms-sockets="+contract.SocketPath(filepath.Join(w.dir, node), "1"), "--node-name="+node,
			"--kubeconfig="+kubeconfig, "--interval=1s", "--jitter=100ms", "--read-timeout=900ms", "--write-timeout=1s")
	}
	kubeconfig := w.kubeconfig("aggregator", contract.AggregatorIdentity, nil, "https://"+w.balancer.Addr())
	w.start(ctx, history.Process{Role: history.RoleAggregator, Instance: 1}, "kms-health-aggregator", "--kubeconfig="+kubeconfig, "--interval=1s", "--operator=kubeapiserver", "--kms-active=always")
}

func (w *world) kubeconfig(name, user string, groups []string, server string) string {
	w.Helper()
	text, err := w.cluster.authority().Kubeconfig(user, groups, server)
	w.must(err)
	file := filepath.Join(w.dir, name+".kubeconfig")
	w.must(os.WriteFile(file, text, 0o600))
	return file
}

func (w *world) start(ctx context.Context, identity history.Process, program string, args ...string) {
	w.Helper()
	u := w.machine.Unit(identity, nil, func(context.Context) (process.Spec, error) {
		return process.Spec{Path: program, Args: args, LogFile: filepath.Join(w.dir, cluster.NameOf(identity)+".log")}, nil
	})
	w.units[cluster.NameOf(identity)] = u
	w.must(u.Start(ctx))
}

// operator is the object with the rollup, as a client sees it.
func (w *world) operator(ctx context.Context) (*unstructured.Unstructured, error) {
	w.Helper()
	config, err := w.cluster.authority().RESTConfig("admin", []string{"system:masters"}, "https://cp-1"+securePort)
	w.must(err)
	c, err := dynamic.NewForConfig(config)
	w.must(err)
	return c.Resource(schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}).Get(ctx, "cluster", metav1.GetOptions{})
}

// awaits waits for a rollup.
func (w *world) awaits(ctx context.Context, status, reason string, within time.Duration) {
	w.Helper()
	fail := func(message string, _ ...int) {
		w.Helper()
		for name := range w.units {
			text, _ := os.ReadFile(filepath.Join(w.dir, name+".log"))
			w.Logf("%s:\n%.3000s", name, text)
		}
		w.Fatal(message)
	}
	gomega.NewGomega(fail).Eventually(w.operator).WithContext(ctx).WithTimeout(within).WithPolling(100 * time.Millisecond).Should(matchers.HaveRollup(status, reason))
}

// The project's own programs work as on real API servers: what happens to a plugin is in the rollup within the bounds.
func TestWorld(t *testing.T) {
	in(t, 1, func(ctx context.Context, w *world) {
		w.awaits(ctx, "False", "AsExpected", 20*time.Second)
		w.must(w.plugins["cp-2"].Kill(ctx))
		w.awaits(ctx, "True", "", 5*time.Second)
		w.must(w.plugins["cp-2"].Start(ctx))
		w.awaits(ctx, "False", "AsExpected", 5*time.Second)
		w.must(w.units["reporter-cp-3"].Kill(ctx))
		w.awaits(ctx, "Unknown", "ReportStale", 10*time.Second)
		w.must(w.units["reporter-cp-3"].Start(ctx))
		w.awaits(ctx, "False", "AsExpected", 10*time.Second)
	})
}

// A reporter may write its own entry and no other: roles and the admission policy are those that clusters install.
func TestAccess(t *testing.T) {
	in(t, 1, func(ctx context.Context, w *world) {
		as := func(user string, groups ...string) dynamic.ResourceInterface {
			config, err := w.cluster.authority().RESTConfig(user, groups, "https://cp-1"+securePort)
			w.must(err)
			c, err := dynamic.NewForConfig(config)
			w.must(err)
			return c.Resource(schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"})
		}
		reporter := as(contract.ReporterIdentity("cp-1"), contract.ReporterGroup)
		entry := func(node string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "status": map[string]any{"conditions": []any{map[string]any{
				"type": contract.ConditionType(node), "status": "True", "reason": contract.ReporterConditionReason, "message": "[]", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}}
		}
		if _, err := reporter.ApplyStatus(ctx, "cluster", entry("cp-1"), metav1.ApplyOptions{FieldManager: contract.FieldManager("cp-1"), Force: true}); err != nil {
			w.Error(err)
		}
		for what, err := range map[string]error{
			"ValidatingAdmissionPolicy 'kms-health-reporter-kubeapiservers'": func() error {
				_, err := reporter.ApplyStatus(ctx, "cluster", entry("cp-2"), metav1.ApplyOptions{FieldManager: contract.FieldManager("cp-2"), Force: true})
				return err
			}(),
			"cannot delete resource": func() error {
				return reporter.Delete(ctx, "cluster", metav1.DeleteOptions{})
			}(),
			`User "nobody" cannot get resource "kubeapiservers"`: func() error {
				_, err := as("nobody").Get(ctx, "cluster", metav1.GetOptions{})
				return err
			}(),
		} {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
				w.Errorf("%s: %v", what, err)
			}
		}
	})
}

// The same seed is the same audit logs, to the microsecond.
func TestReproducible(t *testing.T) {
	once := func(seed uint64) string {
		return in(t, seed, func(ctx context.Context, w *world) {
			w.awaits(ctx, "False", "AsExpected", 20*time.Second)
			w.must(w.plugins["cp-1"].Kill(ctx))
			time.Sleep(30 * time.Second)
			w.must(w.plugins["cp-1"].Start(ctx))
			time.Sleep(30 * time.Second)
		})
	}
	first := once(1)
	for range 3 {
		if again := once(1); again != first {
			t.Fatalf("%d and %d bytes, first different line:\n%s", len(first), len(again), difference(first, again))
		}
	}
}

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return "one is longer"
}

// install installs objects through the API servers that run.
func (w *world) install(ctx context.Context, objects ...*unstructured.Unstructured) {
	var servers []*rest.Config
	for _, s := range w.cluster.all() {
		if s.Status().Running() {
			config, err := w.cluster.authority().RESTConfig("kmsharness-admin", []string{"system:masters"}, s.info.URL)
			w.must(err)
			servers = append(servers, config)
		}
	}
	w.must(controlplane.Install(ctx, servers, objects...))
}
