package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	audit "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/virtualcluster"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

const observer = "system:serviceaccount:kmsharness-observe:kmsharness-observe"

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: maps.Clone(content)}
	if content == nil {
		o.Object = map[string]any{}
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

// wrong is what the reporter of cp-2 or the aggregator do wrong. The zero value is right.
type wrong struct {
	silent, mute, back, spaced bool
	dead                       bool // after its first write, before anybody observes
	rollup                     bool
	often                      time.Duration // the interval; 0: 30 s
	early                      bool          // the operator notes that everything is encrypted before it is
}

// reporter writes the report of a node with each interval.
func reporter(ctx context.Context, t *testing.T, config *rest.Config, node string, w wrong) {
	applier, err := publish.NewApplier(config, publish.KubeAPIServer)
	must(t, err)
	began, jitter := time.Now(), rand.New(rand.NewPCG(1, uint64(len(node))))
	for n := 0; ; n++ {
		report := contract.Report{Node: node, Entries: []contract.Entry{{KeyID: "1", KEKID: "kek", Status: contract.StatusHealthy, LastChecked: time.Now().UTC()}}}
		if w.back && n == 20 {
			report.Entries[0].LastChecked = began
		}
		body, err := publish.ConditionsBody(publish.KubeAPIServer, report, began)
		must(t, err)
		if w.spaced {
			body = bytes.Replace(body, []byte(`"[{`), []byte(`"[ {`), 1)
		}
		if !w.mute && !(w.dead && n > 0) && (!w.silent || n < 20 || n > 22) {
			_ = applier.Apply(ctx, contract.FieldManager(node), body) // an outage is a part of the test
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cmp.Or(w.often, 30*time.Second) + time.Duration(jitter.IntN(6000)-3000)*time.Millisecond):
		}
	}
}

const secret = "c2VjcmV0"

const controlPlanes = "node-role.kubernetes.io/control-plane"

// observed is the verdict on a cluster of two nodes that was observed for half an hour, with an outage of one API server.
func observed(t *testing.T, w wrong) (v check.Verdict, audited []audit.Event) {
	definitions, err := crds.WithKMS(crds.TechPreview)
	must(t, err)
	lines := map[string]*bytes.Buffer{"cp-1": {}, "cp-2": {}}
	o := virtualcluster.Options{APIServers: []string{"cp-1", "cp-2"}, CRDs: definitions, Audit: func(name string) io.Writer { return lines[name] }}
	virtualcluster.Run(t, o, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		admin, err := c.Host("admin").Config("cp-2")
		must(t, err)
		kubelet := prepare(ctx, t, admin)
		balanced, err := c.Host("aggregator").Config(virtualcluster.LoadBalancer)
		must(t, err)
		go aggregator(ctx, t, balanced, c.Host("aggregator").Dial, w)
		for _, node := range []string{"cp-1", "cp-2"} {
			own, err := c.Host(node).Config(node)
			must(t, err)
			of := w
			if node == "cp-1" {
				of = wrong{}
			}
			go reporter(ctx, t, own, node, of)
		}
		must(t, poll.Pause(ctx, time.Minute))
		config, err := c.Host("observer").ConfigAs(virtualcluster.LoadBalancer, observer)
		must(t, err)
		watching, stop := context.WithCancel(ctx)
		log, ended := history.NewLog(nil), make(chan error, 1)
		run := history.Run{Scenario: "observe", Backend: "cluster", Timing: contract.DefaultTiming(), Tolerance: time.Second, Contract: history.FormConditions}
		go func() {
			ended <- Record(watching, Options{REST: config, Operator: core.Operators()[0], NodeSelector: controlPlanes, Run: run, Progress: func(string) {}}, log)
		}()
		must(t, poll.Pause(ctx, 5*time.Minute))
		migrate(ctx, t, admin, w)
		must(t, poll.Pause(ctx, 10*time.Minute))
		must(t, c.Inject(ctx, virtualcluster.APIServerDown{Name: "cp-1"}))
		kubelet(false)
		must(t, poll.Pause(ctx, 3*time.Minute))
		must(t, c.Heal(ctx))
		kubelet(true)
		must(t, poll.Pause(ctx, 12*time.Minute))
		stop()
		must(t, <-ended)
		v = check.Run(log.Events())
	})
	for _, text := range lines {
		for line := range bytes.Lines(text.Bytes()) {
			var e audit.Event
			must(t, json.Unmarshal(line, &e))
			audited = append(audited, e)
		}
	}
	return v, audited
}

func aggregator(ctx context.Context, t *testing.T, config *rest.Config, dial func(context.Context, string, string) (net.Conn, error), w wrong) {
	c := controller.Config{REST: config, Operator: core.Operators()[0], Interval: contract.DefaultTiming().Interval, Registry: prometheus.NewRegistry(),
		Expected: controller.Expected{NodeSelector: controlPlanes}, Log: slog.New(slog.DiscardHandler), Host: host.Host{DialFunc: dial}}
	if w.rollup {
		c.Decide = func(in core.Input, m core.Memory) core.Decision {
			in.Interval *= 10 // reports grow stale too late
			return core.Step(in, m)
		}
	}
	a, err := controller.New(c)
	must(t, err)
	_ = a.Run(ctx)
}

// prepare makes what the cluster has, and gives the observer the rights of the manifest. The function that it returns says, as a kubelet, whether the API
// server of cp-1 is ready.
func prepare(ctx context.Context, t *testing.T, admin *rest.Config) func(ready bool) {
	client, err := dynamic.NewForConfig(admin)
	must(t, err)
	text, err := manifests.Render("observe-job.yaml", manifests.Options{})
	must(t, err)
	all, err := manifests.Decode(text)
	must(t, err)
	vault := map[string]any{"kmsPluginImage": "registry.example.com/plugin@sha256:" + strings.Repeat("0", 64), "vaultAddress": "https://vault.example.com:8200", "vaultKeyPath": "v1/transit/keys/kek",
		"authentication": map[string]any{"type": "AppRole", "appRole": map[string]any{"secret": map[string]any{"name": "role"}}}}
	all = append([]*unstructured.Unstructured{object("v1", "Namespace", "openshift-config-managed", nil), object("v1", "Namespace", "kube-system", nil)}, append(all,
		object("config.openshift.io/v1", "APIServer", "cluster", map[string]any{"spec": map[string]any{"encryption": map[string]any{"type": "KMS", "kms": map[string]any{"type": "Vault", "vault": vault}}}}),
		object("operator.openshift.io/v1", "KubeAPIServer", "cluster", map[string]any{"spec": map[string]any{"managementState": "Managed"}}),
		object("config.openshift.io/v1", "ClusterOperator", "kube-apiserver", map[string]any{"spec": map[string]any{}}))...)
	for _, name := range []string{"cp-1", "cp-2"} {
		node := object("v1", "Node", name, nil)
		node.SetLabels(map[string]string{controlPlanes: ""})
		all = append(all, node)
	}
	key := object("v1", "Secret", "encryption-key-openshift-kube-apiserver-1", map[string]any{"data": map[string]any{"key": secret}})
	key.SetNamespace("openshift-config-managed")
	key.SetLabels(map[string]string{revision.ComponentLabel: "openshift-kube-apiserver"})
	key.SetAnnotations(map[string]string{revision.ConvergedKEKAnnotation: "older", revision.KEKAnnotation: "older"}) // a rotation is under way
	pod := object("v1", "Pod", "kube-apiserver-cp-1", map[string]any{"spec": map[string]any{"nodeName": "cp-1"}})
	pod.SetNamespace("kube-system")
	pod.SetLabels(map[string]string{"component": "kube-apiserver"})
	migration := object("migration.k8s.io/v1alpha1", "StorageVersionMigration", "secrets", map[string]any{"spec": map[string]any{"resource": map[string]any{"version": "v1", "resource": "secrets"}}})
	migration.SetAnnotations(map[string]string{revision.WriteKeyAnnotation: "1"})
	for _, o := range append(all, key, pod, migration) {
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		_, err := client.Resource(gvr).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		must(t, err)
	}
	kubelet := func(ready bool) {
		patch := fmt.Sprintf(`{"status": {"containerStatuses": [{"name": "kube-apiserver", "image": "i", "imageID": "i", "restartCount": 0, "ready": %v, "state": {"running": {}}}]}}`, ready)
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("kube-system").Patch(ctx, pod.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		must(t, err)
	}
	kubelet(true)
	return kubelet
}

// migrate ends the migration for the only key, and notes that on the key.
func migrate(ctx context.Context, t *testing.T, admin *rest.Config, w wrong) {
	client, err := dynamic.NewForConfig(admin)
	must(t, err)
	patch := func(gvr schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
		_, err := client.Resource(gvr).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		must(t, err)
	}
	if !w.early {
		patch(revision.Migrations(), "", "secrets", `{"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}`, "status")
	}
	patch(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, revision.Namespace, "encryption-key-openshift-kube-apiserver-1", `{"metadata": {"annotations": {"`+revision.KEKAnnotation+`": "kek"}}}`)
}

// TestObserve: a right cluster passes, and each wrong program is found by what it does wrong.
func TestObserve(t *testing.T) {
	for name, c := range map[string]struct {
		wrong
		want []string // what fails
	}{
		"right":                             {},
		"a reporter that omits two writes":  {wrong{silent: true}, []string{"CADENCE"}},
		"a reporter that is slow":           {wrong{often: 45 * time.Second}, []string{"CADENCE"}},
		"a reporter that ended long before": {wrong{dead: true}, []string{"CADENCE"}},
		"a reporter that never writes":      {wrong{mute: true}, []string{"CADENCE"}},
		"lastChecked goes back":             {wrong{back: true}, []string{"FRESH-ONLY", "MONOTONIC"}},
		"white space in messages":           {wrong{spaced: true}, []string{"FORMAT"}},
		"everything is noted as encrypted":  {wrong{early: true}, []string{"OPERATOR-CONVERGENCE"}},
		"an aggregator that is too patient": {wrong{back: true, rollup: true}, []string{"CONVERGENCE", "FRESH-ONLY", "MONOTONIC", "ROLLUP-TRUTH"}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !c.rollup && c.wrong != (wrong{}) {
				t.Skip("long: make simulations")
			}
			v, audited := observed(t, c.wrong)
			var failed []string
			judged := 0
			for _, r := range v.Invariants {
				if r.Status == check.Failed {
					failed = append(failed, r.ID)
				}
				judged += min(r.Judged, 1)
			}
			slices.Sort(failed)
			if !slices.Equal(failed, c.want) || judged < 8 || v.OK != (len(c.want) == 0) {
				var text strings.Builder
				_ = check.Print(&text, v)
				t.Errorf("%v failed, want %v; %d judged\n%s", failed, c.want, judged, text.String())
			}
			onlyReads(t, audited)
		})
	}
}

// onlyReads: the observer made no other request than reads, and was sent no data of a Secret.
func onlyReads(t *testing.T, audited []audit.Event) {
	t.Helper()
	reads := 0
	for _, e := range audited {
		if e.User.Username != observer {
			continue
		}
		if reads++; !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
		if e.ResponseObject != nil && bytes.Contains(e.ResponseObject.Raw, []byte(secret)) {
			t.Errorf("%s: %s", e.RequestURI, e.ResponseObject.Raw)
		}
	}
	if reads < 100 {
		t.Errorf("%d requests in the audit log", reads)
	}
}
