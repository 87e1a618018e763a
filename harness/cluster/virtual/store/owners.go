package store

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owners are the managedFields of a version: as such, or as what they can be made of.
type owners interface {
	// entries are in their order. They are shared and not to be changed.
	entries() []metav1.ManagedFieldsEntry
	size() int // bytes as JSON, brackets included; 0 for none
}

// entryList is managedFields as such.
type entryList []metav1.ManagedFieldsEntry

func (l entryList) entries() []metav1.ManagedFieldsEntry { return l }

func (l entryList) size() int {
	n := 0
	for i := range l {
		n += entrySize(&l[i])
	}
	return listSize(n, len(l))
}

// listSize is the bytes of a list of n items, given those of all its items.
func listSize(bytes, n int) int {
	if n == 0 {
		return 0
	}
	return bytes + n + 1
}

// ownerList is managedFields whose entries are shared with the versions before; they stand where they first stood.
type ownerList struct {
	list  []*metav1.ManagedFieldsEntry
	bytes int // of all entries
}

func (o *ownerList) entries() []metav1.ManagedFieldsEntry {
	out := make([]metav1.ManagedFieldsEntry, len(o.list))
	for i, e := range o.list {
		out[i] = *e
	}
	slices.SortFunc(out, compareEntries)
	return out
}

func (o *ownerList) size() int { return listSize(o.bytes, len(o.list)) }

// replace is the list with another entry at a position.
func (o *ownerList) replace(at int, e *metav1.ManagedFieldsEntry) *ownerList {
	out := &ownerList{list: slices.Clone(o.list), bytes: o.bytes - entrySize(o.list[at]) + entrySize(e)}
	out.list[at] = e
	return out
}
