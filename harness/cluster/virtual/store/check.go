package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// check holds a value against its schema. One that did not change is let pass, whatever it is.
func (n *node) check(path *field.Path, v, old any) field.ErrorList {
	if n == nil || old != nil && equal(v, old) {
		return nil
	}
	if v == nil {
		return n.checkNull(path)
	}
	switch v := v.(type) {
	case map[string]any:
		was, _ := old.(map[string]any)
		return n.checkObject(path, v, was)
	case []any:
		was, _ := old.([]any)
		return n.checkList(path, v, was)
	case string:
		return n.checkText(path, v)
	case int64:
		return n.checkNumber(path, v)
	case bool:
		return n.wrongType(path, v, "boolean")
	}
	return nil
}

// checkNull is about what is there and is null. An apply that gives up the last field of an object leaves that.
func (n *node) checkNull(path *field.Path) field.ErrorList {
	if n.kind == "" || n.nullable {
		return nil
	}
	name := ""
	if path != nil {
		name = path.String()
	}
	return field.ErrorList{field.TypeInvalid(path, "null", fmt.Sprintf("%s in body must be of type %s: %q", name, n.kind, "null"))}
}

func (n *node) wrongType(path *field.Path, v any, is string) field.ErrorList {
	if n.kind == "" || n.kind == is || is == "integer" && n.kind == "number" {
		return nil
	}
	return field.ErrorList{field.TypeInvalid(path, v, fmt.Sprintf("%s in body must be of type %s: %q", path, n.kind, is))}
}

func (n *node) checkObject(path *field.Path, v, old map[string]any) field.ErrorList {
	errs := n.wrongType(path, v, "object")
	if n.minProperties != nil && int64(len(v)) < *n.minProperties {
		errs = append(errs, field.Invalid(path, v, fmt.Sprintf("%s in body should have at least %d properties", path, *n.minProperties)))
	}
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			errs = append(errs, field.Required(child(path, name), ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		errs = append(errs, n.field(name).check(child(path, name), v[name], old[name])...)
	}
	return errs
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func (n *node) checkText(path *field.Path, v string) field.ErrorList {
	errs := n.wrongType(path, v, "string")
	if runes := int64(utf8.RuneCountInString(v)); n.maxLength != nil && runes > *n.maxLength {
		errs = append(errs, field.TooLong(path, "", int(*n.maxLength)))
	} else if n.minLength != nil && runes < *n.minLength {
		errs = append(errs, field.Invalid(path, v, fmt.Sprintf("%s in body should be at least %d chars long", path, *n.minLength)))
	}
	if n.pattern != nil && !n.pattern.MatchString(v) {
		errs = append(errs, field.Invalid(path, v, fmt.Sprintf("%s in body should match '%s'", path, n.pattern)))
	}
	if n.format != "" && !strfmt.Default.Validates(n.format, v) {
		errs = append(errs, field.TypeInvalid(path, v, fmt.Sprintf("%s in body must be of type %s: %q", path, n.format, v)))
	}
	if len(n.enum) > 0 && !slices.Contains(n.enum, v) {
		errs = append(errs, field.NotSupported(path, v, n.enum))
	}
	for _, r := range n.rules {
		if !r.holds(v) {
			errs = append(errs, field.Invalid(path, v, r.message).WithOrigin(ruleOrigin))
		}
	}
	return errs
}

func (n *node) checkNumber(path *field.Path, v int64) field.ErrorList {
	errs := n.wrongType(path, v, "integer")
	if n.minimum != nil && float64(v) < *n.minimum {
		errs = append(errs, field.Invalid(path, v, fmt.Sprintf("%s in body should be greater than or equal to %v", path, *n.minimum)))
	}
	if n.maximum != nil && float64(v) > *n.maximum {
		errs = append(errs, field.Invalid(path, v, fmt.Sprintf("%s in body should be less than or equal to %v", path, *n.maximum)))
	}
	return errs
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
