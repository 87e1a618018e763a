package revision

import (
	"cmp"
	"slices"
)

type revisioned interface{ revision() int }

// Newest is the one of the highest revision, by number: 10 is newer than 9. It is in force whichever revision the API server's pod has.
// The zero value if there is none.
func Newest[T revisioned](all []T) T {
	var none T
	if len(all) == 0 {
		return none
	}
	return slices.MaxFunc(all, func(a, b T) int { return cmp.Compare(a.revision(), b.revision()) })
}

// NewestKey is the key of the highest ID; without keys that of clear text, which is migrated because nothing else was ever written.
func NewestKey(keys []Key) Key {
	newest := Key{ID: Plain, Type: "identity", Migrated: true}
	for _, k := range keys {
		if k.ID > newest.ID {
			newest = k
		}
	}
	return newest
}

// Find is a key by its ID, that of clear text included.
func Find(keys []Key, id uint64) (Key, bool) {
	if id == Plain {
		return NewestKey(nil), true
	}
	i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}
