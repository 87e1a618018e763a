package store

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// steady answers the common case: a manager applies to the status what it applied last, with other texts in items that
// nobody else owns anything of. Then nobody gains or loses a field and nothing moves: texts change, and the time of the
// manager's entry. It is false for all that is not so, and for what may not be valid.
func (s *Store) steady(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (*Version, bool, error) {
	list, ok := live.owners.(*ownerList)
	if !ok || live.index == nil || o.Subresource != "status" || !t.Status || t.leads == nil {
		return nil, false, nil
	}
	id := applierID(t, o)
	m := live.index.managers[id]
	if m == nil || m.applied == nil || list.list[m.at].FieldsV1 != m.owned {
		return nil, false, nil
	}
	w := &steadyWalk{id: id, index: live.index}
	if !sameHead(patch.Object, m.applied) || !w.fields(t.leads.fields["status"], patch.Object["status"], m.applied["status"], live.body["status"]) {
		return nil, false, nil
	}
	body, bytes := w.edited(t, live.body)
	if _, transitions := t.schema.rules(); !holds(t.schema.structural, transitions, body, live.body) {
		return nil, false, nil
	}
	s.answered++
	if len(w.edits) == 0 {
		return live.Version, true, s.admit(live.Version, live.Version)
	}
	e := *list.list[m.at]
	e.Time = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	v := &Version{
		Key: live.Key, UID: live.UID, Generation: live.Generation, Created: live.Created,
		body: body, content: live.content + bytes, owners: list.replace(m.at, &e),
	}
	v, err := s.commit(v, live)
	return v, true, err
}

func applierID(t *Type, o ApplyOptions) managerID {
	return managerID{name: o.Manager, subresource: o.Subresource, version: t.Kind.GroupVersion().String(), operation: metav1.ManagedFieldsOperationApply}
}

// sameHead is whether two applies differ at most in their status, and say nothing of the metadata but the name.
func sameHead(a, b map[string]any) bool {
	meta, _ := a["metadata"].(map[string]any)
	return len(a) == 4 && len(b) == 4 && len(meta) == 1 && equal(a["kind"], b["kind"]) &&
		equal(a["apiVersion"], b["apiVersion"]) && equal(a["metadata"], b["metadata"])
}

// steadyWalk goes through an apply, the one before and the object.
type steadyWalk struct {
	id    managerID
	index *index
	edits []edit
}

type edit struct {
	list, at int
	item     map[string]any
	bytes    int // that it is larger by
}

func (w *steadyWalk) fields(b *branch, patch, last, live any) bool {
	p, ok1 := patch.(map[string]any)
	l, ok2 := last.(map[string]any)
	v, ok3 := live.(map[string]any)
	if !ok1 || !ok2 || !ok3 || b == nil || len(p) != len(l) || len(p) == 0 {
		return false
	}
	for name, value := range p {
		before, ok1 := l[name]
		now, ok2 := v[name]
		below := b.fields[name]
		switch {
		case !ok1 || !ok2:
			return false
		case below == nil:
			if !equal(value, before) || !equal(value, now) {
				return false
			}
		case below.list != nil:
			if !w.items(below, value, before, now) {
				return false
			}
		case !w.fields(below, value, before, now):
			return false
		}
	}
	return true
}

func (w *steadyWalk) items(b *branch, patch, last, live any) bool {
	p, _ := patch.([]any)
	l, _ := last.([]any)
	v, _ := live.([]any)
	if len(p) != len(l) || len(p) == 0 {
		return false
	}
	of, previous := &w.index.lists[b.at], -1
	for i := range p {
		key := itemKey(b.list.keys, p[i])
		at, ok := of.at[key]
		if !ok || at <= previous || key != itemKey(b.list.keys, l[i]) {
			return false
		}
		if owners := of.owners[key]; len(owners) != 1 || owners[0] != w.id {
			return false
		}
		if !w.item(b, at, p[i], l[i], v[at]) {
			return false
		}
		previous = at
	}
	return true
}

func (w *steadyWalk) item(b *branch, at int, patch, last, live any) bool {
	p, ok1 := patch.(map[string]any)
	l, ok2 := last.(map[string]any)
	v, ok3 := live.(map[string]any)
	if !ok1 || !ok2 || !ok3 || len(p) != len(l) {
		return false
	}
	e := edit{list: b.at, at: at}
	for name, value := range p {
		before, ok1 := l[name]
		now, ok2 := v[name]
		if !ok1 || !ok2 {
			return false
		}
		text, ok1 := value.(string)
		_, ok2 = before.(string)
		was, ok3 := now.(string)
		switch {
		case !ok1 || !ok2 || !ok3:
			if !equal(value, before) || !equal(value, now) {
				return false
			}
		case text != was:
			if form, ok := b.list.texts[name]; !ok || !form.valid(text, was) {
				return false
			}
			if e.item == nil {
				e.item = with(v, "", nil)
			}
			e.item[name] = text
			e.bytes += textSize(text) - textSize(was)
		}
	}
	if e.item != nil {
		w.edits = append(w.edits, e)
	}
	return true
}

// edited is the body with the edits, and how many bytes it is larger by.
func (w *steadyWalk) edited(t *Type, body map[string]any) (map[string]any, int) {
	bytes := 0
	for i, l := range t.lists {
		var items []any
		for _, e := range w.edits {
			if e.list != i {
				continue
			}
			if items == nil {
				items = slices.Clone(l.at(body))
			}
			items[e.at] = e.item
			bytes += e.bytes
		}
		if items != nil {
			body = l.put(body, items)
		}
	}
	return body, bytes
}
