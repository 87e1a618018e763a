package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const badPatch = "failed to create typed patch object"

// explain gives the error about a patch that is not of its type one text. The merge code goes through objects in no order, and
// stops at the first field that is not declared; here all that is wrong is named, sorted.
func (m *mergers) explain(err error, patch *unstructured.Unstructured) error {
	text := err.Error()
	if !strings.HasPrefix(text, badPatch) || m.typ.schema == nil {
		return err
	}
	head, _, _ := strings.Cut(text, "): ")
	var all typed.ValidationErrors
	for _, path := range undeclared(m.typ.schema.structural, patch.Object, "") {
		all = append(all, typed.ValidationError{Path: path, ErrorMessage: "field not declared in schema"})
	}
	m.typ.prune(patch)
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

// undeclared returns the paths of the fields that a schema does not declare, as the merge code writes them. The metadata have no schema in a CRD.
func undeclared(s *schema.Structural, v any, path string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + name
			if p, ok := s.Properties[name]; ok {
				out = append(out, undeclared(&p, v[name], at)...)
			} else if a := s.AdditionalProperties; a != nil && a.Structural != nil {
				out = append(out, undeclared(a.Structural, v[name], at)...)
			} else if len(s.Properties) > 0 && !s.XPreserveUnknownFields && !(path == "" && (name == "apiVersion" || name == "kind" || name == "metadata")) {
				out = append(out, at)
			}
		}
	case []any:
		for i, item := range v {
			if s.Items != nil {
				out = append(out, undeclared(s.Items, item, path+element(s.XListMapKeys, i, item))...)
			}
		}
	}
	return out
}

// element is how the merge code names an item of a list with these keys.
func element(keys []string, i int, item any) string {
	m, ok := item.(map[string]any)
	if !ok || len(keys) == 0 {
		return fieldpath.PathElement{Index: &i}.String()
	}
	keys = slices.Sorted(slices.Values(keys))
	for j, k := range keys {
		keys[j] = fmt.Sprintf("%s=%q", k, m[k])
	}
	return "[" + strings.Join(keys, ",") + "]"
}
