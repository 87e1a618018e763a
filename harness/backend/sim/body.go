package sim

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// parsed is a request's body, decoded once for all who look at it. Nobody may change it.
type parsed struct {
	done   bool
	object *unstructured.Unstructured
	err    error
}

// object is the body in the way of an API server.
func (r request) object() (*unstructured.Unstructured, error) {
	p := r.parsed
	if p == nil {
		p = &parsed{}
	}
	if !p.done {
		p.done, p.object = true, &unstructured.Unstructured{}
		if p.err = utiljson.Unmarshal(r.body, &p.object.Object); p.err != nil || !isSingle(p.object.Object) {
			p.object = &unstructured.Unstructured{}
			p.err = p.object.UnmarshalJSON(r.body)
		}
	}
	return p.object, p.err
}

// isSingle is whether a body is surely one object: a kind, and no list.
func isSingle(o map[string]any) bool {
	kind, _ := o["kind"].(string)
	_, isList := o["items"]
	return kind != "" && !isList
}
