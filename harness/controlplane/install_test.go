package controlplane_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// The custom resource stands before its definition, which must not matter.
const widget = `
apiVersion: test.kmsharness.io/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
---
# nothing here
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.kmsharness.io}
spec:
  group: test.kmsharness.io
  scope: Cluster
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: installed, namespace: default}
`

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	w := newWorld(t, nil, specs(2)...)
	if err := w.install(t); err == nil {
		t.Error("installed without a running API server")
	}
	w.start(t, controlplane.Ready)
	for range 2 { // the second time changes nothing
		if err := w.install(t, decode(t, widget)...); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range w.Servers() { // served everywhere when Install returns
		config, err := w.AdminConfig(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		widgets := client.Resource(schema.GroupVersionResource{Group: "test.kmsharness.io", Version: "v1", Resource: "widgets"})
		if _, err := widgets.Get(t.Context(), "first", metav1.GetOptions{}); err != nil {
			t.Errorf("API server %s: %v", s.Name, err)
		}
	}
	err := w.install(t, decode(t, "{apiVersion: nowhere.io/v1, kind: Nothing, metadata: {name: x}}")...)
	if err == nil || !strings.Contains(err.Error(), "Nothing x") {
		t.Errorf("installed a resource that is not served: %v", err)
	}
}

func (w world) install(t *testing.T, objects ...*unstructured.Unstructured) error {
	t.Helper()
	var servers []*rest.Config
	for _, s := range w.Servers() {
		if s.Status().Running() {
			config, err := w.AdminConfig(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, config)
		}
	}
	return controlplane.Install(t.Context(), servers, objects...)
}
