package sim

import (
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// presentChanges records of a version the items that are others than in the one before.
func (w *world) presentChanges(t watch.Target, v *objects.Version) {
	before := w.pictures[t]
	if before == nil {
		before = &picture{}
	}
	lists, _ := statusLists(v.Body())
	o := &history.Object{Resource: t.Resource(), Name: v.Key.Name, ResourceVersion: v.ResourceVersion()}
	o.Conditions = fresh(before.items[0], lists[0], conditionOf)
	for i := 1; i < len(lists); i++ {
		o.HealthReports = append(o.HealthReports, fresh(before.items[i], lists[i], reportOf)...)
	}
	w.pictures[t] = &picture{of: v, items: lists}
	w.sequence.Converted(t, o, w.k.Now())
}

// fresh converts the items that do not stand in the same place as before.
func fresh[T any](before, items []any, convert func(map[string]any) (T, bool)) (out []T) {
	for i, item := range items {
		fields, _ := item.(map[string]any)
		if i < len(before) && sameItem(before[i], fields) {
			continue
		}
		if c, ok := convert(fields); ok {
			out = append(out, c)
		}
	}
	return out
}
