package virtual

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// aggregate adds an aggregated API server on two nodes, behind a Service, and lets the kube-apiservers know that there is one.
func (w *world) aggregate(ctx context.Context) (stub cluster.Stub, servers []local.Server, service *netfault.LoadBalancer) {
	w.Helper()
	stub, err := cluster.StubOf(history.OpenShiftAPIServer)
	w.must(err)
	service, err = netfault.NewLoadBalancer(w.machine.network.Host("service"), "service", time.Second)
	w.must(err)
	for _, node := range nodes()[:2] {
		e := cluster.Plugins("1").Config(func(keyID string) string { return cluster.HostSocket(filepath.Join(w.dir, node), keyID) })
		e.Resources = []string{cluster.Flunders}
		s, err := w.cluster.AddAggregated(controlplane.AggregatedSpec{Kind: stub.APIServer, Name: node, Server: "https://" + w.balancer.Addr(), Encryption: e})
		w.must(err)
		w.must(service.Add(node, s.Info().Addr))
		servers = append(servers, s)
	}
	for _, s := range w.cluster.all() {
		w.must(s.Stop(ctx))
		w.must(s.Start(ctx, controlplane.Ready))
	}
	for _, s := range servers {
		w.must(s.Start(ctx, controlplane.Ready))
	}
	return stub, servers, service
}

// flunders are a user's objects, by way of a server.
func (w *world) flunders(stub cluster.Stub, url, user string, wrap func(http.RoundTripper) http.RoundTripper, groups ...string) dynamic.ResourceInterface {
	w.Helper()
	config, err := w.cluster.authority().RESTConfig(user, groups, url)
	w.must(err)
	if wrap != nil {
		config.Wrap(wrap)
	}
	c, err := dynamic.NewForConfig(config)
	w.must(err)
	return c.Resource(stub.Encrypted().Resource).Namespace("default")
}

func flunder(stub cluster.Stub, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": cluster.Wardle + "/" + stub.Version, "kind": "Flunder", "metadata": map[string]any{"name": name}, "spec": map[string]any{"reference": "x"}}}
}

// until waits for an error, or for none.
func (w *world) until(what string, within time.Duration, request func() error, want func(error) bool) {
	w.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := request()
		if want(err) {
			return
		}
		if time.Since(began) > within {
			w.Fatalf("%s: after %v: %v", what, within, err)
		}
	}
}

func none(err error) bool { return err == nil }

const kube = "https://cp-1" + securePort

func TestAggregatedAPIServer(t *testing.T) {
	in(t, 1, func(ctx context.Context, w *world) {
		stub, servers, service := w.aggregate(ctx)
		defer service.Close()
		admin := w.flunders(stub, kube, "admin", nil, "system:masters")
		write := func(name string) func() error {
			return func() error {
				_, err := admin.Create(ctx, flunder(stub, name), metav1.CreateOptions{})
				return err
			}
		}
		if err := write("none")(); !apierrors.IsNotFound(err) {
			w.Errorf("without an APIService: %v", err)
		}
		objects, err := w.cluster.authority().Manifests(controlplane.APIService{Group: cluster.Wardle, Version: stub.Version, Namespace: stub.Namespace, Name: stub.Service, Addr: service.Addr()})
		w.must(err)
		w.install(ctx, objects...)
		w.until("a new APIService", 3*time.Second, write("a"), none)
		if raw, err := cluster.ReadEtcd(ctx, w.cluster, stub.Registry()+"default/a"); err != nil || !strings.HasPrefix(string(raw), "k8s:enc:kms:v2:") {
			w.Errorf("in etcd: %.20q, %v", raw, err)
		}
		if o, err := admin.Get(ctx, "a", metav1.GetOptions{}); err != nil || o.GetName() != "a" {
			w.Errorf("%v, %v", o, err)
		}

		for _, s := range servers {
			w.must(s.Kill(ctx))
		}
		w.until("none runs", time.Second, write("b"), apierrors.IsServiceUnavailable)
		w.until("kube-apiserver notices", checkAvailable+availabilityTimeout, write("b"), func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "unable to handle") && !w.available(stub)
		})
		w.must(servers[1].Start(ctx, controlplane.Ready))
		w.until("one runs again", checkUnavailable+availabilityTimeout, write("b"), none)
	})
}

// available reads the condition by which kube-apiservers go.
func (w *world) available(stub cluster.Stub) bool {
	for _, o := range w.cluster.objects.Objects(apiServices.Group) {
		if c, _ := condition(o); o.GetName() == stub.Version+"."+cluster.Wardle {
			return c["status"] == "True"
		}
	}
	return false
}

// An aggregated API server believes a kube-apiserver whom it names, and nobody else, and asks it what a user may do.
func TestAggregatedIdentity(t *testing.T) {
	in(t, 1, func(ctx context.Context, w *world) {
		stub, servers, service := w.aggregate(ctx)
		defer service.Close()
		direct := servers[0].Info().URL
		pretends := func(next http.RoundTripper) http.RoundTripper {
			return transport.NewAuthProxyRoundTripper("admin", "", []string{"system:masters"}, nil, next)
		}
		list := func(of dynamic.ResourceInterface) error {
			_, err := of.List(ctx, metav1.ListOptions{})
			return err
		}
		if err := list(w.flunders(stub, direct, "admin", nil, "system:masters")); err != nil {
			w.Error(err)
		}
		for name, of := range map[string]dynamic.ResourceInterface{"nobody": w.flunders(stub, direct, "nobody", nil), "pretender": w.flunders(stub, direct, "nobody", pretends)} {
			if err := list(of); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "nobody" cannot list resource "flunders"`) {
				w.Errorf("%s: %v", name, err)
			}
		}
		rule := map[string]any{"apiGroups": []any{cluster.Wardle}, "resources": []any{"flunders"}, "verbs": []any{"list"}}
		w.install(ctx,
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "r"}, "rules": []any{rule}}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "r"},
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
				"subjects": []any{map[string]any{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}}}})
		w.until("nobody may now", time.Second, func() error { return list(w.flunders(stub, direct, "nobody", nil)) }, none)

		objects, err := w.cluster.authority().Manifests(controlplane.APIService{Group: cluster.Wardle, Version: stub.Version, Namespace: stub.Namespace, Name: stub.Service, Addr: service.Addr()})
		w.must(err)
		w.install(ctx, objects...)
		w.until("nobody may by way of kube-apiserver", 3*time.Second, func() error { return list(w.flunders(stub, kube, "nobody", nil)) }, none)
		if err := list(w.flunders(stub, kube, "other", nil)); !apierrors.IsForbidden(err) {
			w.Errorf("another: %v", err)
		}

		w.must(servers[0].Stop(ctx))
		for _, s := range w.cluster.all() {
			w.must(s.Kill(ctx))
		}
		if err := servers[0].Start(ctx, controlplane.Started); err == nil || !strings.Contains(err.Error(), "ask a kube-apiserver") {
			w.Errorf("started without a kube-apiserver: %v", err)
		}
	})
}
