package controller

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
)

const interval = time.Second

// environment is a real API server with the real CRDs, permissions and policy.
type environment struct {
	*testing.T
	ctx      context.Context
	config   *rest.Config
	admin    dynamic.Interface
	operator core.Operator
}

// start boots it, or skips: the end-to-end suite covers the same with processes.
func start(t *testing.T, operator string) *environment {
	t.Helper()
	list, err := crds.List(crds.TechPreview)
	must(t, err)
	env := &envtest.Environment{BinaryAssetsDirectory: assetstest.Dir(t), CRDInstallOptions: envtest.CRDInstallOptions{CRDs: list}}
	config, err := env.Start()
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	op, err := core.OperatorByName(operator)
	must(t, err)
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	must(t, err)
	e := &environment{T: t, ctx: t.Context(), config: config, admin: admin, operator: op}
	e.install()
	return e
}

func (e *environment) install() {
	objects, err := manifests.Objects(manifests.Options{Operator: e.operator.Name})
	must(e, err)
	for _, o := range objects {
		e.create(gvrOf(o), o)
	}
	e.create(operatorGVR(e.operator), newObject("operator.openshift.io/v1", e.operator.Kind, "cluster", map[string]any{"managementState": "Managed"}))
	e.create(clusterOperatorGVR(), newObject("config.openshift.io/v1", "ClusterOperator", e.operator.ClusterOperator, map[string]any{}))
	e.create(apiServerGVR(), newObject("config.openshift.io/v1", "APIServer", "cluster", map[string]any{}))
	e.encryption("KMS")
}

// encryption sets the active encryption type.
func (e *environment) encryption(kind string) {
	spec := `{"spec":{"encryption":{"type":"` + kind + `","kms":null}}}`
	if kind == "KMS" {
		spec = `{"spec":{"encryption":{"type":"KMS","kms":{"type":"Vault","vault":{
			"kmsPluginImage":"registry.example.com/vault/plugin@sha256:0000000000000000000000000000000000000000000000000000000000000000",
			"vaultAddress":"https://vault.example.com:8200","vaultKeyPath":"v1/transit/keys/kek",
			"authentication":{"type":"AppRole","appRole":{"secret":{"name":"vault"}}}}}}}}`
	}
	_, err := e.admin.Resource(apiServerGVR()).Patch(e.ctx, "cluster", "application/merge-patch+json", []byte(spec), metav1.PatchOptions{})
	must(e, err)
}

func (e *environment) create(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	e.Helper()
	_, err := e.admin.Resource(gvr).Namespace(o.GetNamespace()).Create(e.ctx, o, metav1.CreateOptions{})
	must(e, err)
}

func (e *environment) addNode(name string) {
	node := newObject("v1", "Node", name, map[string]any{})
	node.SetLabels(map[string]string{"node-role.kubernetes.io/control-plane": ""})
	e.create(nodeGVR(), node)
}

func (e *environment) removeNode(name string) {
	must(e, e.admin.Resource(nodeGVR()).Delete(e.ctx, name, metav1.DeleteOptions{}))
}

func (e *environment) cr() *unstructured.Unstructured {
	cr, err := e.admin.Resource(operatorGVR(e.operator)).Get(e.ctx, "cluster", metav1.GetOptions{})
	must(e, err)
	return cr
}

func (e *environment) observed() core.Observed {
	return new(core.Reader).Read(e.cr().Object, e.operator)
}

// condition is "Status/Reason" of a condition of the CR, empty when there is none.
func (e *environment) condition(conditionType string) string {
	return says(e.observed().Conditions, conditionType)
}

// union is "Status/Reason" of a condition of the ClusterOperator.
func (e *environment) union(conditionType string) string {
	co, err := e.admin.Resource(clusterOperatorGVR()).Get(e.ctx, e.operator.ClusterOperator, metav1.GetOptions{})
	must(e, err)
	return says(core.ReadConditions(co.Object), conditionType)
}

func says(conditions []core.Condition, conditionType string) string {
	for _, c := range conditions {
		if c.Type == conditionType {
			return c.Status + "/" + c.Reason
		}
	}
	return ""
}

// as is a connection under another identity, as RBAC and the policy see it.
func (e *environment) as(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// running is an aggregator under its own identity.
type running struct {
	registry *prometheus.Registry
	stop     func()
}

// run starts one; stop ends it and fails the test if that takes more than two seconds.
func (e *environment) run(change func(*Config)) *running {
	r := &running{registry: prometheus.NewRegistry()}
	config := Config{
		REST: e.as(contract.AggregatorIdentity), Operator: e.operator, Interval: interval,
		Expected: Expected{NodeSelector: "node-role.kubernetes.io/control-plane"},
		Log:      slog.New(slog.NewTextHandler(e.Output(), nil)), Registry: r.registry,
	}
	change(&config)
	c, err := New(config)
	must(e, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			must(e, err)
		case <-time.After(2 * time.Second):
			e.Error("the aggregator did not stop within 2 s")
			<-done
		}
	}
	e.Cleanup(r.stop)
	return r
}

// writes is how many writes the aggregator made, to whatever target, with whatever result.
func (e *environment) writes(r *running) float64 {
	families, err := r.registry.Gather()
	must(e, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "kms_health_aggregator_writes_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
