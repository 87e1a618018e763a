package store

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// fill puts the schema's defaults where nothing is.
func (t *Type) fill(o *unstructured.Unstructured) {
	if t.schema != nil {
		t.schema.fill(o.Object)
	}
}

func (n *node) fill(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, c := range n.fields {
			if _, ok := v[name]; !ok && c.standard != nil {
				v[name], _ = clone(c.standard) // it was cloned before
			}
		}
		for name, below := range v {
			if c := n.field(name); c != nil {
				c.fill(below)
			}
		}
	case []any:
		for _, item := range v {
			if n.items != nil {
				n.items.fill(item)
			}
		}
	}
}

// filler is the merge code's defaulter for one type.
type filler struct{ *Type }

func (f filler) Default(o runtime.Object) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		f.fill(u)
	}
}
