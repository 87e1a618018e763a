package store

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (n *node) checkList(path *field.Path, v, old []any) field.ErrorList {
	errs := n.wrongType(path, v, "array")
	if n.maxItems != nil && int64(len(v)) > *n.maxItems {
		errs = append(errs, field.TooMany(path, len(v), int(*n.maxItems)))
	}
	if n.minItems != nil && int64(len(v)) < *n.minItems {
		errs = append(errs, field.Invalid(path, int64(len(v)), fmt.Sprintf("%s in body should have at least %d items", path, *n.minItems)))
	}
	if n.items == nil {
		return errs
	}
	was := map[string]any{}
	if len(n.keys) > 0 {
		for _, item := range old {
			was[itemKey(n.keys, item)] = item
		}
	}
	for i, item := range v {
		errs = append(errs, n.items.check(path.Index(i), item, was[itemKey(n.keys, item)])...)
	}
	return append(errs, n.duplicates(path, v)...)
}

// duplicates are items of a list map that have the key of another.
func (n *node) duplicates(path *field.Path, v []any) (errs field.ErrorList) {
	if len(n.keys) == 0 {
		return nil
	}
	seen := make(map[string]bool, len(v))
	for i, item := range v {
		key := itemKey(n.keys, item)
		if m, ok := item.(map[string]any); ok && seen[key] {
			keys := map[string]any{}
			for _, k := range n.keys {
				keys[k] = m[k]
			}
			errs = append(errs, field.Duplicate(path.Index(i), keys))
		}
		seen[key] = true
	}
	return errs
}
