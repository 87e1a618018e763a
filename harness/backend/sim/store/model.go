package store

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applyModel merges an apply by the index where that is enough, and otherwise by the real code on the part that it is about.
func (s *Store) applyModel(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	if v, ok, err := s.steady(now, t, live, patch, o); ok {
		return v, err
	}
	c, ok := s.sole(now, t, live, patch, o)
	if !ok {
		var err error
		if c, err = s.mergePart(now, t, live, patch, o); err != nil {
			return nil, err
		}
	}
	v, err := s.change(now, t, live, c, o.Subresource)
	if err == nil {
		live.remember(applierID(t, o), patch)
	}
	return v, err
}

// mergePart is what the real code makes of an apply.
func (s *Store) mergePart(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (candidate, error) {
	p := newPart(t, live, touchedBy(t, live, patch, applierID(t, o)))
	if p == nil {
		return t.merge.apply(live.Version, patch.DeepCopy(), o, now)
	}
	if v, ok := p.version(); ok {
		c, err := t.merge.apply(v, patch.DeepCopy(), o, now)
		if err != nil {
			return candidate{}, err
		}
		body, ok := p.body(c.body, patch.Object)
		fields, err := p.owners(c.owners)
		if ok && err == nil {
			s.parts++
			return candidate{body: body, owners: fields}, nil
		}
	}
	return t.merge.apply(live.Version, patch.DeepCopy(), o, now)
}

// touchedBy are the items that an apply may change: those that it has, and those that its manager owned.
func touchedBy(t *Type, live *record, patch *unstructured.Unstructured, id managerID) []map[string]bool {
	out := make([]map[string]bool, len(t.lists))
	for i, l := range t.lists {
		out[i] = setOf(keysOf(l, l.at(patch.Object)))
		if live.index == nil || live.index.managers[id] == nil {
			continue
		}
		for _, key := range live.index.managers[id].items[i] {
			out[i][key] = true
		}
	}
	return out
}

// updateModel records an update of the status by the real code on the part that it changes; false where that is not known
// to be the same.
func (s *Store) updateModel(now time.Time, t *Type, live *record, in *unstructured.Unstructured, o UpdateOptions) (candidate, bool) {
	if o.Subresource != "status" || live.index == nil || live.index.updaters()+1 > maxUpdaters {
		return candidate{}, false
	}
	touched, ok := changedItems(t, live, in.Object)
	if !ok {
		return candidate{}, false
	}
	p := newPart(t, live, touched)
	if p == nil {
		return candidate{}, false
	}
	v, ok := p.version()
	if !ok {
		return candidate{}, false
	}
	in.SetManagedFields(nil)
	cut := &unstructured.Unstructured{Object: p.cut(in.Object)}
	c, err := t.merge.update(v, cut.DeepCopy(), o.Manager, o.Subresource, now)
	if err != nil {
		return candidate{}, false
	}
	fields, err := p.owners(c.owners)
	s.parts++
	return candidate{body: in.Object, owners: fields}, err == nil
}

// maxUpdaters is how many entries of updates an object keeps; the merge code joins the oldest beyond it.
const maxUpdaters = 10

func (ix *index) updaters() (n int) {
	for id := range ix.managers {
		if id.operation == metav1.ManagedFieldsOperationUpdate {
			n++
		}
	}
	return n
}

// changedItems are those that an update adds, removes or changes; false for lists that have no index.
func changedItems(t *Type, live *record, body map[string]any) ([]map[string]bool, bool) {
	out := make([]map[string]bool, len(t.lists))
	for i, l := range t.lists {
		out[i] = map[string]bool{}
		was, now := l.at(live.body), l.at(body)
		seen := make(map[string]bool, len(now))
		for _, item := range now {
			key := itemKey(l.keys, item)
			if _, isObject := item.(map[string]any); !isObject || seen[key] {
				return nil, false
			}
			seen[key] = true
			if at, ok := live.index.lists[i].at[key]; !ok || !equal(was[at], item) {
				out[i][key] = true
			}
		}
		for _, key := range keysOf(l, was) {
			if !seen[key] {
				out[i][key] = true
			}
		}
	}
	return out, true
}

// remember keeps what a manager applied and what it owns since.
func (r *record) remember(id managerID, patch *unstructured.Unstructured) {
	list, ok := r.owners.(*ownerList)
	if r.index == nil || !ok || r.index.managers[id] == nil {
		return
	}
	m := r.index.managers[id]
	m.applied, m.owned = patch.Object, list.list[m.at].FieldsV1
}
