package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// takeInventory reads every encrypted object from etcd, past every API server, and records by which keys they are
// encrypted. The key is in the prefix of each value, and the key_id in the protobuf after it, so no key is needed to
// read them.
func (ds *dataset) takeInventory(ctx context.Context) error {
	all, err := ds.inventory(ctx)
	if err != nil {
		return err
	}
	ds.e.record(all)
	return nil
}

// inventory is by which keys the encrypted objects in etcd are encrypted.
func (ds *dataset) inventory(ctx context.Context) (*history.StorageInventory, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	from := time.Now().UTC()
	counted := map[under]*history.Under{}
	for _, k := range ds.kinds() {
		if err := rangeAll(ctx, ds.e.controlPlane.Storage, k.Registry, prefixEnd(k.Registry), func(found []KeyValue) error { return count(counted, found) }); err != nil {
			return nil, err
		}
	}
	return &history.StorageInventory{From: from, Under: sortedUnder(counted)}, nil
}

func count(counted map[under]*history.Under, found []KeyValue) error {
	for _, kv := range found {
		s, err := parseStored(kv.Value)
		if err != nil {
			return fmt.Errorf("%s in etcd: %w", kv.Key, err)
		}
		if counted[s.under] == nil {
			counted[s.under] = &history.Under{Provider: s.provider, KEKID: s.kekID, Example: strings.TrimPrefix(string(kv.Key), "/registry/")}
		}
		counted[s.under].Count++
	}
	return nil
}

func sortedUnder(counted map[under]*history.Under) []history.Under {
	all := make([]history.Under, 0, len(counted))
	for _, u := range counted {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b history.Under) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.KEKID, b.KEKID))
	})
	return all
}

// prefixEnd is the first key behind those that begin with a prefix.
func prefixEnd(prefix string) string {
	end := []byte(prefix)
	end[len(end)-1]++
	return string(end)
}
