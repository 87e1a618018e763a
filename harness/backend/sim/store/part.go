package store

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// part is an object cut down to what a write is about: of the lists only the items that it may change, and of the managers
// only those that own anything of what is left. The real code makes of it what it would make of that part of the whole,
// because it looks at items one by one. One item that somebody else owns, and one that nobody owns, stay as witnesses: what
// becomes of them becomes of all the others, and a list that has others does not become empty.
type part struct {
	t         *Type
	live      *record
	list      *ownerList
	keep      []map[string]bool // by list
	witnesses []map[string]bool
	before    map[managerID]*metav1.ManagedFieldsEntry // cut down
}

// newPart is nil for an object that has no index.
func newPart(t *Type, live *record, touched []map[string]bool) *part {
	list, ok := live.owners.(*ownerList)
	if !ok || live.index == nil {
		return nil
	}
	p := &part{t: t, live: live, list: list, keep: touched, before: map[managerID]*metav1.ManagedFieldsEntry{}}
	for i, l := range t.lists {
		p.witnesses = append(p.witnesses, p.witness(i, l))
	}
	return p
}

func (p *part) witness(i int, l list) map[string]bool {
	out := map[string]bool{}
	owned, free := false, false
	for _, item := range l.at(p.live.body) {
		key := itemKey(l.keys, item)
		isOwned := len(p.live.index.lists[i].owners[key]) > 0
		if p.keep[i][key] || isOwned && owned || !isOwned && free {
			continue
		}
		owned, free = owned || isOwned, free || !isOwned
		out[key] = true
	}
	for key := range out {
		p.keep[i][key] = true
	}
	return out
}

// version is the part as an object of its own; false when it cannot be made. It must have owners: an apply to an object that
// has none first gives all that is there to before-first-apply, and that is not only the part.
func (p *part) version() (*Version, bool) {
	v := *p.live.Version
	v.body = p.cut(v.body)
	var fields entryList
	for _, e := range p.list.list {
		id := idOf(e)
		cut, err := p.restrict(p.live.index.managers[id], e)
		if err != nil {
			return nil, false
		}
		if cut != nil {
			p.before[id] = cut
			fields = append(fields, *cut)
		}
	}
	v.owners = fields
	return &v, len(fields) > 0
}

// cut leaves of the lists of a body what is kept.
func (p *part) cut(body map[string]any) map[string]any {
	for i, l := range p.t.lists {
		all := l.at(body)
		var items []any
		for _, item := range all {
			if p.keep[i][itemKey(l.keys, item)] {
				items = append(items, item)
			}
		}
		if len(items) != len(all) {
			body = l.put(body, items)
		}
	}
	return body
}

// restrict is an entry without the items that are not kept: itself if it has none, nil if it has nothing else.
func (p *part) restrict(m *manager, e *metav1.ManagedFieldsEntry) (*metav1.ManagedFieldsEntry, error) {
	kept, others := m.rest, false
	for i, keys := range m.items {
		for _, key := range keys {
			kept, others = kept || p.keep[i][key], others || !p.keep[i][key]
		}
	}
	if !kept || !others {
		if !kept {
			e = nil
		}
		return e, nil
	}
	set, err := decode(e.FieldsV1)
	if err != nil {
		return nil, err
	}
	left := fieldpath.NewSet()
	for path := range set.All() {
		if i, key, ok := p.t.itemOf(path); !ok || p.keep[i][key] {
			left.Insert(path.Copy())
		}
	}
	return withFields(e, left)
}

func withFields(e *metav1.ManagedFieldsEntry, set *fieldpath.Set) (*metav1.ManagedFieldsEntry, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	out := *e
	out.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return &out, nil
}

// owners are those of the whole, after the real code made others of the part's; in no order.
func (p *part) owners(after entryList) (entryList, error) {
	var out entryList
	changed := map[managerID]bool{}
	for i := range after {
		id := idOf(&after[i])
		changed[id] = true
		e, err := p.rejoin(id, &after[i])
		if err != nil {
			return nil, err
		}
		out = append(out, *e)
	}
	for _, e := range p.list.list {
		id := idOf(e)
		switch {
		case changed[id]:
		case p.before[id] == nil:
			out = append(out, *e)
		case p.before[id] != e: // it lost all that was in the part, and owns more
			left, err := p.rejoin(id, nil)
			if err != nil {
				return nil, err
			}
			out = append(out, *left)
		}
	}
	return out, nil
}

// rejoin is what a manager owns in the whole: what it owned outside of the part, and what it owns in it now.
func (p *part) rejoin(id managerID, now *metav1.ManagedFieldsEntry) (*metav1.ManagedFieldsEntry, error) {
	m := p.live.index.managers[id]
	if m == nil || p.before[id] == p.list.list[m.at] {
		return now, nil
	}
	whole := p.list.list[m.at]
	set, err := decode(whole.FieldsV1)
	if err != nil {
		return nil, err
	}
	if before := p.before[id]; before != nil {
		cut, err := decode(before.FieldsV1)
		if err != nil {
			return nil, err
		}
		set = set.Difference(cut)
	}
	if now == nil {
		return withFields(whole, set)
	}
	more, err := decode(now.FieldsV1)
	if err != nil {
		return nil, err
	}
	return withFields(now, set.Union(more))
}

// body is that of the whole, after the real code made another of the part's; false when the part did not stand for it.
func (p *part) body(after, patch map[string]any) (map[string]any, bool) {
	for i, l := range p.t.lists {
		all := l.at(p.live.body)
		made := make(map[string]any)
		for _, item := range l.at(after) {
			made[itemKey(l.keys, item)] = item
		}
		for key := range p.witnesses[i] {
			if made[key] == nil {
				return nil, false
			}
		}
		var items []any
		for _, key := range mergedOrder(keysOf(l, all), keysOf(l, l.at(patch))) {
			if item := made[key]; item != nil {
				items = append(items, item)
			} else if !p.keep[i][key] {
				items = append(items, all[p.live.index.lists[i].at[key]])
			}
		}
		if len(items) != len(l.at(after)) || !slices.Equal(keysOf(l, items), keysOf(l, l.at(after))) {
			after = l.put(after, items)
		}
	}
	return after, true
}

func keysOf(l list, items []any) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = itemKey(l.keys, item)
	}
	return out
}
