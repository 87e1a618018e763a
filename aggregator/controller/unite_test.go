package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// changing is an API server on which somebody's condition becomes false while an aggregator is about to take the rollups away. It keeps what the
// ClusterOperator is told.
type changing struct{ told chan string }

func (a changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(r.URL.Path, "/clusteroperators/") {
		a.told <- string(body)
		_, _ = fmt.Fprint(w, `{"apiVersion":"config.openshift.io/v1","kind":"ClusterOperator","metadata":{"name":"kube-apiserver","resourceVersion":"9"}}`)
		return
	}
	_ = json.NewEncoder(w).Encode(crWith("8", condition("EncryptionMigrationControllerProgressing", "False")))
}

func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": "2026-05-08T12:00:00Z"}
}

func crWith(version string, conditions ...any) map[string]any {
	return map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer",
		"metadata": map[string]any{"name": "cluster", "uid": "1", "resourceVersion": version}, "status": map[string]any{"conditions": conditions}}
}

// When the rollups go, the ClusterOperator is told the union of what is left on the CR by then, not of what was read before: those two never
// stood there at once.
func TestUnionIsOfWhatIsLeft(t *testing.T) {
	api := changing{told: make(chan string, 1)}
	server := httptest.NewServer(api)
	defer server.Close()
	c, err := New(Config{REST: &rest.Config{Host: server.URL}, Operator: core.Operators()[0], Interval: time.Second,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	must(t, err)
	defer c.dialer.CloseAll()
	before := crWith("7", condition("EncryptionMigrationControllerProgressing", "True"), condition(contract.ConditionProgressing, "True"))
	must(t, c.cr.mirror.Add(&unstructured.Unstructured{Object: before}))
	operator := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": c.Operator.ClusterOperator, "resourceVersion": "3"}}}
	must(t, c.operator.mirror.Add(operator))

	in := core.Input{Now: time.Now(), Interval: time.Second, Observed: core.Observed{Conditions: core.ReadConditions(before)}}
	_, _, err = c.carryOut(context.Background(), in, c.Decide(in, core.Memory{}))
	must(t, err)
	if told := <-api.told; !strings.Contains(told, `"status":"False","type":"Progressing"`) {
		t.Errorf("the ClusterOperator is told %s, expected that nothing is progressing", told)
	}
}

// What the aggregator decides from says how it unites.
func TestInputHasTheUnion(t *testing.T) {
	rule := contract.Union{Inertia: contract.Inertia{All: 2 * time.Minute}, UnknownStatus: contract.UnknownIsBad}
	c, err := New(Config{REST: &rest.Config{Host: "http://127.0.0.1:1"}, Operator: core.Operators()[0], Interval: time.Second, Union: rule,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	must(t, err)
	defer c.dialer.CloseAll()
	if in, ok := c.input(view{cr: &unstructured.Unstructured{Object: crWith("7")}}); !ok || !in.Union.Equal(rule) {
		t.Errorf("decides with %+v, expected %+v", in.Union, rule)
	}
}
