package observe

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// seen is a saved history as it would have been observed: objects, what should report, and what pods, probes and nodes show of processes and links.
func seen(events []history.Event) []history.Event {
	log := history.NewLog(nil)
	r := &recorder{options: Options{Operator: core.Operators()[0]}, sink: log, reports: map[string]string{}, up: map[history.Process]bool{}}
	for _, e := range events {
		switch {
		case e.Run != nil:
			run := *e.Run
			run.Observed = true
			e.Run = &run
			log.Append(e)
		case e.APIServer != "" || e.Kind == history.KindRequest || e.Kind == history.KindCall || e.Kind == history.KindAction || e.Kind == history.KindExpectation:
		case e.Object != nil:
			r.Record(e.At, e.Source, e.Object)
		case e.Expected != nil:
			r.expected = *e.Expected
			log.Append(e)
			for p := range r.up {
				r.set(e.At, p, r.up[p] && r.expects(p.Node))
			}
		case e.Process != nil && e.Process.Role == history.RoleReporter:
			if p := (history.Process{Role: history.RoleReporter, Node: e.Process.Node}); e.Process.State != history.ProcessStarted && e.Process.State != history.ProcessReady && r.up[p] {
				r.set(e.At, p, false)
			}
		default:
			log.Append(e)
		}
	}
	return log.Events()
}

func failed(events []history.Event) (ids []string) {
	for _, r := range check.Run(events).Invariants {
		if r.Status == check.Failed {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// TestSavedHistories: less can be seen than a run records, but what can be seen is judged as in the run.
func TestSavedHistories(t *testing.T) {
	files, err := filepath.Glob("../../ci/golden/histories/*.jsonl.gz")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	found := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")
		if name == "openshift-report-that-cannot-be-believed" { // a client of the scenario writes it, which only the audit log shows
			continue
		}
		events := read(t, file)
		all := failed(events)
		for _, id := range failed(seen(events)) {
			if found[id] = true; !slices.Contains(all, id) {
				t.Errorf("%s: %s failed, and in the run it did not", name, id)
			}
		}
	}
	for _, id := range []string{"CADENCE", "CONVERGENCE", "FORMAT", "ROLLUP-TRUTH"} {
		if !found[id] {
			t.Errorf("%s failed nowhere", id)
		}
	}
}

func read(t *testing.T, file string) []history.Event {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	events, err := history.Read(z)
	must(t, err)
	return events
}

func TestDecisionOfAnnotations(t *testing.T) {
	key := func(name string, annotations map[string]string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	migration := func(name, key, succeeded string) any {
		return object("migration.k8s.io/v1alpha1", "StorageVersionMigration", name, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{revision.WriteKeyAnnotation: key}},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": revision.MigrationSucceeded, "status": succeeded}}}})
	}
	got := decisionOf(revision.KubeAPIServer, []any{
		key("encryption-key-openshift-kube-apiserver-10", map[string]string{revision.ConvergedKEKAnnotation: "b"}),
		key("encryption-key-openshift-kube-apiserver-9", map[string]string{revision.KEKAnnotation: "a"}),
		key("encryption-config-openshift-kube-apiserver-11", nil),
	}, []any{migration("secrets", "10", "True"), migration("routes", "10", "False"), migration("configmaps", "9", "False")})
	if want := (history.Decision{Key: 10, Keys: []uint64{9, 10}, ConvergedKEK: "b", Rewriting: []string{"routes"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
