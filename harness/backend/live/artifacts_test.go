package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/cluster"
)

// fakeServer answers every list and every get, unless the path is among those that fail.
func fakeServer(t *testing.T, failing string) *cluster.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case failing != "" && strings.Contains(r.URL.Path, failing):
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no etcd","code":500}`)
		case strings.HasSuffix(r.URL.Path, "s"):
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"kind":"X","apiVersion":"v1","metadata":{"name":"one"}}]}`)
		default:
			fmt.Fprint(w, `{"kind":"X","apiVersion":"v1","metadata":{"name":"one"},"status":{"conditions":[{"type":"Degraded"}]}}`)
		}
	}))
	t.Cleanup(s.Close)
	c, err := cluster.NewClient(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSnapshotThrough(t *testing.T) {
	op, err := cluster.OperatorNamed("")
	if err != nil {
		t.Fatal(err)
	}
	e := &apiServer{run: &run{traits: cluster.Traits{RealNodes: true}}, operator: op}
	dir := t.TempDir()
	if err := snapshotThrough(t.Context(), fakeServer(t, ""), e.artifactObjects(), dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"kubeapiservers.operator.openshift.io.yaml": "type: Degraded", "clusteroperators.config.openshift.io.yaml": "type: Degraded",
		"apiservers.config.openshift.io.yaml": "name: one", "nodes.yaml": "name: one", "leases.coordination.k8s.io.yaml": "name: one",
		"pods.yaml": "name: one", "events.yaml": "name: one",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
	for _, w := range e.artifactObjects() {
		if w.resource == cluster.SecretObjects() {
			t.Error("Secrets are copied")
		}
	}
}

// One resource that an API server cannot give costs no other, and is named.
func TestSnapshotOfHalfAnAPIServer(t *testing.T) {
	op, err := cluster.OperatorNamed("")
	if err != nil {
		t.Fatal(err)
	}
	e, dir := &apiServer{run: &run{}, operator: op}, t.TempDir()
	err = snapshotThrough(t.Context(), fakeServer(t, "clusteroperators"), e.artifactObjects(), dir)
	if err == nil || !strings.Contains(err.Error(), "clusteroperators.config.openshift.io kube-apiserver: no etcd") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nodes.yaml")); err != nil {
		t.Error(err)
	}
}
