package watch_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func target() watch.Target {
	return watch.Target{GVR: schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}, Name: "cluster"}
}

func cr(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer",
		"metadata": map[string]any{"name": "cluster", "resourceVersion": version, "managedFields": []any{
			map[string]any{"manager": "kms-health-reporter-cp-1", "operation": "Apply", "subresource": "status", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:status": map[string]any{
					"f:conditions":       map[string]any{`k:{"type":"KMSHealthReporter_cp-1"}`: map[string]any{".": map[string]any{}}},
					"f:encryptionStatus": map[string]any{"f:healthReports": map[string]any{`k:{"keyID":"1","nodeName":"cp-1"}`: map[string]any{}}},
				}}},
		}},
		"status": map[string]any{
			"conditions": []any{map[string]any{"type": "KMSHealthReporter_cp-1", "status": "True", "message": "[]"}},
			"encryptionStatus": map[string]any{"healthReports": []any{
				map[string]any{"nodeName": "cp-1", "keyID": "1", "status": "Healthy"}}},
		},
	}}
}

func TestConvert(t *testing.T) {
	o, err := watch.Convert("kubeapiservers.operator.openshift.io", cr("7"))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Conditions) != 1 || len(o.HealthReports) != 1 || o.ResourceVersion != "7" ||
		len(o.Owners["condition/KMSHealthReporter_cp-1"]) != 1 || len(o.Owners["report/cp-1/1"]) != 1 {
		t.Fatalf("converted %+v", o)
	}
}

func TestSequenceNeverGoesBack(t *testing.T) {
	log := history.NewLog(nil)
	s := watch.NewSequence(log)
	s.Absent(target(), "1", time.Unix(1, 0)) // there never was one: no news
	for _, v := range []string{"5", "5", "4", "6", "3"} {
		s.Present(target(), cr(v), time.Unix(1, 0))
	}
	s.Absent(target(), "6", time.Unix(1, 0))
	s.Absent(target(), "9", time.Unix(1, 0))
	s.Present(target(), cr("8"), time.Unix(1, 0))
	var got []string
	for _, e := range log.Events() {
		v := e.Object.ResourceVersion
		if e.Object.Deleted {
			v = "-" + v
		}
		got = append(got, v)
	}
	if len(got) != 3 || got[0] != "5" || got[1] != "6" || got[2] != "-9" || s.Problem() != nil {
		t.Fatalf("recorded %v, problem %v; want 5 6 -9", got, s.Problem())
	}
	s.Present(target(), cr("x"), time.Unix(1, 0))
	if s.Problem() == nil {
		t.Fatal("a resourceVersion that is not a number was accepted")
	}
}

// Two watches deliver: the one with the newer state had no processor time after it, and comes second with the earlier instant.
func TestSequenceIsInOrderInTime(t *testing.T) {
	log := history.NewLog(nil)
	s := watch.NewSequence(log)
	s.Present(target(), cr("5"), time.Unix(7, 0))
	s.Present(target(), cr("6"), time.Unix(6, 0))
	if e := history.InTime(log.Events()); len(e) != 2 || e[0].Object.ResourceVersion != "5" {
		t.Fatalf("in time: %v, want 5 before 6", e)
	}
}

func TestWatcherRecordsAndSettles(t *testing.T) {
	gvr := target().GVR
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{gvr: "KubeAPIServerList"}, cr("5"))
	log := history.NewLog(nil)
	recorded := make(chan history.Event, 10)
	defer log.Subscribe(func(e history.Event) { recorded <- e })()
	w := watch.New(watch.NewSequence(log), clock.RealClock{}, target())
	defer w.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	w.Add(ctx, "cp-1", client)
	expectVersion(t, ctx, recorded, "5")
	for _, v := range []string{"6", "7"} {
		// The fake does not replay what happened between a list and a watch: write until it is seen.
		if _, err := client.Resource(gvr).Update(ctx, cr(v), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Settle(ctx); err != nil && v == "7" {
			t.Fatal(err)
		}
	}
}

func expectVersion(t *testing.T, ctx context.Context, events <-chan history.Event, want string) {
	t.Helper()
	select {
	case e := <-events:
		if e.Object.ResourceVersion != want {
			t.Fatalf("resourceVersion %s, want %s", e.Object.ResourceVersion, want)
		}
	case <-ctx.Done():
		t.Fatalf("resourceVersion %s was not recorded", want)
	}
}
