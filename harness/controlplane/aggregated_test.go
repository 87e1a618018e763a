package controlplane_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
)

// aggregating is a control plane of which nothing runs.
func aggregating(t *testing.T, aggregation bool) *controlplane.ControlPlane {
	t.Helper()
	supervisor := process.New(process.Options{})
	t.Cleanup(func() { _ = supervisor.Close(t.Context()) })
	cp, err := controlplane.New(controlplane.Options{
		Binaries: assets.Binaries{Etcd: "etcd", KubeAPIServer: "kube-apiserver"}, Supervisor: supervisor,
		Dir: t.TempDir(), LogDir: t.TempDir(), Servers: []controlplane.ServerSpec{{Name: "cp-1"}}, Aggregation: aggregation,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Close(t.Context()) })
	return cp
}

func aggregatedSpec() controlplane.AggregatedSpec {
	return controlplane.AggregatedSpec{Kind: "oauth-apiserver", Name: "cp-1", Program: "sample-apiserver", Server: "https://127.0.0.1:1", EtcdPrefix: "/oauth-apiserver",
		ServiceNamespace: "openshift-oauth-apiserver", ServiceName: "api", Encryption: controlplane.Encryption{Resources: []string{"flunders.wardle.example.com"}}}
}

func TestAddAggregated(t *testing.T) {
	s, err := aggregating(t, true).AddAggregated(aggregatedSpec())
	if err != nil || s.Name != "cp-1" || !strings.HasPrefix(s.URL, "https://127.") || s.Status().Running() {
		t.Errorf("%+v, %v", s, err)
	}
	if err := s.WaitReady(t.Context(), controlplane.Ready); err == nil {
		t.Error("one that was never started is ready")
	}
	if _, err := aggregating(t, false).AddAggregated(aggregatedSpec()); err == nil || !strings.Contains(err.Error(), "without an aggregation layer") {
		t.Errorf("without an aggregation layer: %v", err)
	}
	for name, spoil := range map[string]func(*controlplane.AggregatedSpec){
		"no program": func(s *controlplane.AggregatedSpec) { s.Program = "" },
		"no prefix":  func(s *controlplane.AggregatedSpec) { s.EtcdPrefix = "" },
		"no server":  func(s *controlplane.AggregatedSpec) { s.Server = "" },
		"a path":     func(s *controlplane.AggregatedSpec) { s.Kind = "../x" },
		"capital":    func(s *controlplane.AggregatedSpec) { s.Encryption.Resources = []string{"Flunders.wardle.example.com"} },
	} {
		spec := aggregatedSpec()
		spoil(&spec)
		if _, err := aggregating(t, true).AddAggregated(spec); err == nil || !strings.Contains(err.Error(), "cp-1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPIServiceManifests(t *testing.T) {
	cp := aggregating(t, true)
	a := controlplane.APIService{Group: "wardle.example.com", Version: "v1beta1", Namespace: "openshift-oauth-apiserver", Name: "api", Addr: "127.0.0.1:4711"}
	objects, err := cp.Manifests(a)
	if err != nil || len(objects) != 3 {
		t.Fatalf("%v, %v", objects, err)
	}
	host, _, _ := unstructured.NestedString(objects[1].Object, "spec", "externalName")
	port, _, _ := unstructured.NestedInt64(objects[2].Object, "spec", "service", "port")
	bundle, _, _ := unstructured.NestedString(objects[2].Object, "spec", "caBundle")
	pem, err := base64.StdEncoding.DecodeString(bundle)
	if host != "localhost" || port != 4711 || objects[2].GetName() != "v1beta1.wardle.example.com" || err != nil || !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
		t.Errorf("external name %q, port %d, %s, %v", host, port, pem, err)
	}
	a.Addr = "nowhere"
	if _, err := cp.Manifests(a); err == nil || !strings.Contains(err.Error(), "v1beta1.wardle.example.com") {
		t.Errorf("an address without a port: %v", err)
	}
}
