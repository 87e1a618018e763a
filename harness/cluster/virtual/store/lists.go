package store

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// list is a list map of a type that is reached through fields alone, and whose keys are text: the model works by its items.
type list struct {
	path  []string
	keys  []string
	texts map[string]text // the fields of an item that are text
}

// text validates a field of an item by itself. No rule of anything above it is about its value.
type text struct {
	schema *schema.Structural
	form   *validate.SchemaValidator
	rules  func() *cel.Validator
}

func (t text) valid(v, was string) bool {
	return t.form.Validate(v).IsValid() && holds(t.schema, t.rules(), v, was)
}

// branch is what of a type leads to its lists.
type branch struct {
	fields map[string]*branch
	list   *list // nil above
	at     int   // its place in Type.lists
}

// findLists finds the lists of a type in the order of their paths; nil when there is none.
func (t *Type) findLists(s *schema.Structural, path []string) *branch {
	if relates(s) || s.XMapType != nil && *s.XMapType == "atomic" {
		return nil
	}
	b := &branch{fields: map[string]*branch{}}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], append(slices.Clone(path), name)
		if isIndexed(&p) {
			l := list{path: at, keys: p.XListMapKeys, texts: textsOf(p.Items)}
			b.fields[name] = &branch{list: &l, at: len(t.lists)}
			t.lists = append(t.lists, l)
		} else if below := t.findLists(&p, at); below != nil {
			b.fields[name] = below
		}
	}
	if len(b.fields) == 0 {
		return nil
	}
	return b
}

// isIndexed reports whether a schema is of a list map of granular objects with required keys that are text.
func isIndexed(s *schema.Structural) bool {
	if s.XListType == nil || *s.XListType != "map" || s.Items == nil || relates(s) || relates(s.Items) || s.Items.ValueValidation == nil {
		return false
	}
	item := s.Items
	if item.XMapType != nil && *item.XMapType == "atomic" {
		return false
	}
	for _, k := range s.XListMapKeys {
		if item.Properties[k].Type != "string" || !slices.Contains(item.ValueValidation.Required, k) {
			return false
		}
	}
	return len(s.XListMapKeys) > 0
}

// relates reports whether a schema has validations that can be about any value below.
func relates(s *schema.Structural) bool {
	v := s.ValueValidation
	return len(s.XValidations) > 0 || v != nil && (len(v.AllOf) > 0 || len(v.AnyOf) > 0 || len(v.OneOf) > 0 || v.Not != nil)
}

func textsOf(item *schema.Structural) map[string]text {
	out := map[string]text{}
	for name, p := range item.Properties {
		if p.Type == "string" {
			out[name] = text{schema: &p, form: validate.NewSchemaValidator(p.ToKubeOpenAPI(), nil, "", strfmt.Default), rules: sync.OnceValue(func() *cel.Validator { return compile(&p, false) })}
		}
	}
	return out
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

// itemKey is the key of an item in its list map, for a Go map.
func itemKey(keys []string, item any) string {
	m, _ := item.(map[string]any)
	if len(keys) == 1 {
		s, _ := m[keys[0]].(string)
		return s
	}
	var b strings.Builder
	for _, k := range keys {
		s, _ := m[k].(string)
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.String()
}
