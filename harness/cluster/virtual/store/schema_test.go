package store

import (
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// CEL rules of the real CRDs are evaluated, of values that change. The errors are the library's.
func TestRules(t *testing.T) {
	nodes := func(status object) *unstructured.Unstructured {
		status["nodeName"] = "cp-1"
		return kubeAPIServer(object{"nodeStatuses": []any{status}, "latestAvailableRevision": int64(2)})
	}
	for _, c := range []struct {
		first, second *unstructured.Unstructured
		want          string // empty: accepted
	}{
		{nodes(object{}), nodes(object{"currentRevision": int64(1)}), ""},
		{nodes(object{}), kubeAPIServer(object{"latestAvailableRevision": int64(3)}), ""},
		{nodes(object{}), kubeAPIServer(object{"latestAvailableRevision": int64(1)}), `status.latestAvailableRevision: Invalid value: 1: must only increase`},
		{kubeAPIServer(object{}), nodes(object{"currentRevision": int64(1)}), `status.nodeStatuses[0].currentRevision: Invalid value: currentRevision can not be set on creation of a nodeStatus`},
		{kubeAPIServer(object{}), nodes(object{"targetRevision": "x", "currentRevision": int64(1)}), `expected numeric (int or float), got string`},
		{nodes(object{}), conditions(condition("-", "1")), `status.conditions[0].type: Invalid value: "-"`},
		{nodes(object{}), nodes(object{"lastFailedCount": int64(1), "lastFailedReason": strings.Repeat("x", 9)}), ""},
	} {
		f := newFixture(t)
		_, err := f.try("a", c.first, true)
		f.must(err)
		_, err = f.try("a", c.second, true)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

const things = `
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status:
            type: object
            properties:
              related:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  x-kubernetes-validations: [{rule: self.one != self.other, message: must differ}]
                  properties: {name: {type: string}, one: {type: string}, other: {type: string}}
              alone:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    text: {type: string, maxLength: 3, x-kubernetes-validations: [{rule: "size(self) > size(oldSelf)", message: must grow}]}
                    more: {type: string, x-kubernetes-validations: [{rule: self != 'bad', message: must be good}]}
`

// Rules are evaluated when a manager applies the same fields with other texts: those of the text, of the item that it is in, and those about
// changes even if the text is the same.
func TestRulesOfItems(t *testing.T) {
	crd := &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(things), crd); err != nil {
		t.Fatal(err)
	}
	types, err := NewTypes([]*apiextensions.CustomResourceDefinition{crd})
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	thing := func(status object) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: object{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object{"name": "t"}, "status": status}}
	}
	related := func(one, other string) *unstructured.Unstructured {
		return thing(object{"related": []any{object{"name": "n", "one": one, "other": other}}})
	}
	alone := func(text, more string) *unstructured.Unstructured {
		return thing(object{"alone": []any{object{"name": "n", "text": text, "more": more}}})
	}
	for _, c := range []struct {
		patches []*unstructured.Unstructured
		want    string // of the last; empty: accepted
	}{
		{[]*unstructured.Unstructured{related("a", "b"), related("a", "c"), related("d", "d")}, `status.related[0]: Invalid value: must differ`},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("abc", "")}, ""},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("c", "")}, `status.alone[0].text: Invalid value: "c": must grow`},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("abcd", "")}, `status.alone[0].text: Too long: may not be more than 3 bytes`},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("ab", "1")}, `status.alone[0].text: Invalid value: "ab": must grow`},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("abc", "bad")}, `status.alone[0].more: Invalid value: "bad": must be good`},
		{[]*unstructured.Unstructured{alone("a", ""), alone("ab", ""), alone("ab", "")}, `status.alone[0].text: Invalid value: "ab": must grow`},
	} {
		s := New(types)
		_, err := s.Create(start, resource, thing(nil), "harness")
		for i, patch := range c.patches {
			if err != nil {
				t.Fatalf("patch %d: %v", i, err)
			}
			_, err = s.Apply(start, resource, patch, ApplyOptions{Manager: "a", Subresource: "status"})
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
