package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// prune removes what the schema does not know, as an API server does with what it is sent to create or update, and returns
// the paths. The metadata have no schema in a CRD.
func (t *Type) prune(o *unstructured.Unstructured) []string {
	if t.schema == nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(o.Object)) {
		switch c := t.schema.fields[name]; {
		case name == "metadata" || name == "apiVersion" || name == "kind":
		case c == nil:
			delete(o.Object, name)
			out = append(out, "."+name)
		default:
			c.prune(o.Object[name], "."+name, &out)
		}
	}
	return out
}

func (n *node) prune(v any, path string, out *[]string) {
	switch v := v.(type) {
	case map[string]any:
		if n.open || len(n.fields) == 0 && n.values == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if c := n.field(name); c != nil {
				c.prune(v[name], path+"."+name, out)
			} else {
				delete(v, name)
				*out = append(*out, path+"."+name)
			}
		}
	case []any:
		for i, item := range v {
			if n.items != nil {
				n.items.prune(item, path+n.element(i, item), out)
			}
		}
	}
}

// field is the schema of a field of an object, nil for one that is not declared.
func (n *node) field(name string) *node {
	if c := n.fields[name]; c != nil {
		return c
	}
	return n.values
}

// element is how the merge code names an item.
func (n *node) element(i int, item any) string {
	m, ok := item.(map[string]any)
	if !ok || len(n.keys) == 0 {
		return fieldpath.PathElement{Index: &i}.String()
	}
	keys := slices.Clone(n.keys)
	slices.Sort(keys)
	for j, k := range keys {
		keys[j] = fmt.Sprintf("%s=%q", k, m[k])
	}
	return "[" + strings.Join(keys, ",") + "]"
}

const badPatch = "failed to create typed patch object"

// explain gives the error about a patch that is not of its type one text. The merge code goes through objects in no order, and
// stops at the first field that is not declared; here all that is wrong is named, sorted.
func (m *mergers) explain(err error, patch *unstructured.Unstructured) error {
	text := err.Error()
	if !strings.HasPrefix(text, badPatch) {
		return err
	}
	head, _, _ := strings.Cut(text, "): ")
	var all typed.ValidationErrors
	for _, path := range m.typ.prune(patch) {
		all = append(all, typed.ValidationError{Path: path, ErrorMessage: "field not declared in schema"})
	}
	_, rest := m.converter.ObjectToTyped(patch)
	var more typed.ValidationErrors
	if errors.As(rest, &more) {
		all = append(all, more...)
	}
	if len(all) == 0 {
		return err
	}
	slices.SortFunc(all, func(a, b typed.ValidationError) int { return strings.Compare(a.Error(), b.Error()) })
	return fmt.Errorf("%s): %w", head, all)
}
