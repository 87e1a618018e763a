package sim

import (
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// presentChanges records of a version the items that are others than in the one before.
func (o *observer) presentChanges(t watch.Target, v *objects.Version) {
	before := o.pictures[t]
	if before == nil {
		before = &picture{}
	}
	lists, _ := statusLists(v.Body())
	object := &history.Object{Resource: t.Resource(), Name: v.Key.Name, ResourceVersion: v.ResourceVersion()}
	object.Conditions = fresh(before.items[0], lists[0], conditionOf)
	for i := 1; i < len(lists); i++ {
		object.HealthReports = append(object.HealthReports, fresh(before.items[i], lists[i], reportOf)...)
	}
	o.pictures[t] = &picture{of: v, items: lists}
	o.sequence.Converted(t, object, o.w.k.Now())
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
