package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// PatchOp is one operation of a JSON patch (RFC 6902).
type PatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// RemovalPatch is the JSON patch on the status subresource that carries out a removal on cr as it was read. Every
// removal is preceded by a test of what is removed: if somebody wrote in between, the API server refuses the whole
// patch and the aggregator looks again, so that it never removes what it has not seen, nor anybody else's entry. The
// patch is empty when there is nothing (left) to remove.
//
// A merge patch would replace the whole list, and a Server-Side Apply can only give up what it owns.
func RemovalPatch(cr map[string]any, op Operator, r Removal) []PatchOp {
	types := slices.Clone(r.Conditions)
	for _, n := range r.Nodes {
		types = append(types, contract.ConditionType(n))
	}
	ops := removeItems(cr, []string{"status", "conditions"}, func(item map[string]any) bool {
		return slices.Contains(types, text(item, "type"))
	})
	typed := func(item map[string]any) bool {
		return slices.Contains(r.Nodes, text(item, "nodeName")) || slices.Contains(r.Entries, typedItem(item))
	}
	if items := list(cr, op.TypedPath...); len(items) > 0 && allMatch(items, typed) {
		return append(ops, removeAt(cr, op.TypedPath[:len(op.TypedPath)-1], emptied(cr, op.TypedPath))...)
	}
	return append(ops, removeItems(cr, op.TypedPath, typed)...)
}

// removeItems goes from the last item to the first, so that the indices of those still to come stay right.
func removeItems(cr map[string]any, path []string, matches func(map[string]any) bool) []PatchOp {
	var ops []PatchOp
	for i, item := range slices.Backward(list(cr, path...)) {
		if matches(item) {
			at := fmt.Sprintf("%s/%d", pointer(path), i)
			ops = append(ops, unchanged(cr, at, item), PatchOp{Op: "remove", Path: at})
		}
	}
	return ops
}

// unchanged tests an item. In place of one that is over the bounds of a report, it tests the version of cr: a patch may be no larger than 3 MiB.
func unchanged(cr map[string]any, at string, item map[string]any) PatchOp {
	version := (&unstructured.Unstructured{Object: cr}).GetResourceVersion()
	if version != "" && len(text(item, "message"))+len(text(item, "reason"))+len(text(item, "status")) > contract.MaxReportBytes {
		return PatchOp{"test", "/metadata/resourceVersion", version}
	}
	return PatchOp{"test", at, item}
}

// emptied is what has to go when the typed list loses its last item: the list, which may not be empty (minItems 1),
// and encryptionStatus with it if it held nothing else (minProperties 1).
func emptied(cr map[string]any, listPath []string) []string {
	parent := listPath[:len(listPath)-1]
	if fields, ok, _ := unstructured.NestedFieldNoCopy(cr, parent...); ok {
		if m, _ := fields.(map[string]any); len(m) == 1 {
			return parent
		}
	}
	return listPath
}

// removeAt tests all that is in parent: what else was there may have gone since, and it may not be left empty.
func removeAt(cr map[string]any, parent, path []string) []PatchOp {
	value, _, _ := unstructured.NestedFieldNoCopy(cr, parent...)
	return []PatchOp{{"test", pointer(parent), value}, {Op: "remove", Path: pointer(path)}}
}

func pointer(path []string) string { return "/" + strings.Join(path, "/") }

func allMatch(items []map[string]any, matches func(map[string]any) bool) bool {
	return !slices.ContainsFunc(items, func(item map[string]any) bool { return !matches(item) })
}
