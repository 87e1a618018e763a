package revision

import (
	"cmp"
	"slices"
)

// Prunable are revisions that may go, the oldest first: not among the keep newest, and not in use. Of the newest that never holds.
func Prunable[T revisioned](all []T, keep int, inUse func(T) bool) []int {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(a.revision(), b.revision()) })
	var out []int
	for _, r := range sorted[:max(0, len(sorted)-max(1, keep))] {
		if !inUse(r) {
			out = append(out, r.revision())
		}
	}
	return out
}

// PrunableKeys are keys that may go, the oldest first. Whoever asks knows that no object is encrypted under a key that is not in one of
// the configurations. The newest key stays, so that its ID is never given away again, and so do the keep newest of those not in use: a
// backup may need them.
func PrunableKeys(keys []Key, keep int, configs ...Config) []uint64 {
	newest := NewestKey(keys).ID
	var unused []uint64
	for _, k := range keys {
		used := slices.ContainsFunc(configs, func(c Config) bool { return slices.Contains(c.Keys, k.ID) })
		if !used && k.ID != newest {
			unused = append(unused, k.ID)
		}
	}
	slices.Sort(unused)
	return unused[:max(0, len(unused)-keep)]
}
