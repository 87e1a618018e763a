package controller

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until got returns want, and returns how long that took. A poll is a request to the API server,
// so the result is an upper bound.
func eventually(t testing.TB, within time.Duration, want string, got func() string) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for last := ""; ; <-tick.C {
		if last = got(); last == want {
			return time.Since(began)
		}
		if time.Since(began) > within {
			t.Fatalf("after %v: got %q, want %q", within, last, want)
		}
	}
}

// throughout requires got to return want all the time.
func throughout(t testing.TB, span time.Duration, want string, got func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(span); time.Now().Before(end); <-tick.C {
		if last := got(); last != want {
			t.Fatalf("got %q, want %q for %v", last, want, span)
		}
	}
}

func nodeGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

func gvrOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return gvr
}

func newObject(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
