package store

import (
	"maps"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// list is a list map of a type that is reached through fields alone, and whose keys are text: the model works by its items.
type list struct {
	path []string
	keys []string
}

// findLists finds the lists of a type in the order of their paths.
func (t *Type) findLists(n *node, s *apiextensions.JSONSchemaProps, path []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, c := s.Properties[name], n.fields[name]
		at := append(slices.Clone(path), name)
		if isIndexed(&p) {
			t.lists = append(t.lists, list{path: at, keys: p.XListMapKeys})
			c.list = len(t.lists)
			n.leads = true
			continue
		}
		if p.XMapType == nil || *p.XMapType != "atomic" {
			t.findLists(c, &p, at)
			n.leads = n.leads || c.leads
		}
	}
}

// isIndexed is whether a schema is of a list map of granular objects with required keys that are text.
func isIndexed(s *apiextensions.JSONSchemaProps) bool {
	if s.XListType == nil || *s.XListType != "map" || s.Items == nil || s.Items.Schema == nil {
		return false
	}
	item := s.Items.Schema
	if item.XMapType != nil && *item.XMapType == "atomic" {
		return false
	}
	for _, k := range s.XListMapKeys {
		if item.Properties[k].Type != "string" || !slices.Contains(item.Required, k) {
			return false
		}
	}
	return len(s.XListMapKeys) > 0
}

// at is what stands at the list's path; nil when there is nothing.
func (l list) at(body map[string]any) []any {
	var v any = body
	for _, name := range l.path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	items, _ := v.([]any)
	return items
}

// put is the body with other items at the list's path. All above it is copied, the rest shared. Where the path ends early
// there is nothing to put it in.
func (l list) put(body map[string]any, items []any) map[string]any { return putAt(body, l.path, items) }

func putAt(o map[string]any, path []string, items []any) map[string]any {
	if len(path) == 1 {
		return with(o, path[0], items)
	}
	below, ok := o[path[0]].(map[string]any)
	if !ok {
		return o
	}
	return with(o, path[0], putAt(below, path[1:], items))
}
