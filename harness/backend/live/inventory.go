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

// inventoryPage is how many objects are read at once. It is halved when an answer is too large (maxStored).
const inventoryPage = 128

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
		if err := ds.countAll(ctx, counted, k.Registry); err != nil {
			return nil, err
		}
	}
	return &history.StorageInventory{From: from, Under: sortedUnder(counted)}, nil
}

// countAll counts the objects whose keys begin with registry.
func (ds *dataset) countAll(ctx context.Context, counted map[under]*history.Under, registry string) error {
	end := prefixEnd(registry)
	for r := (Range{From: registry, End: end, Limit: inventoryPage}); r.From != ""; {
		found, more, err := ds.e.controlPlane.Storage.RangeEtcd(ctx, r)
		switch {
		case err != nil && ctx.Err() == nil && r.Limit > 1:
			r.Limit /= 2
			continue
		case err != nil:
			return fmt.Errorf("read %s* from etcd: %w", registry, err)
		}
		if err := count(counted, found); err != nil {
			return err
		}
		r.From = ""
		if more && len(found) > 0 {
			r.From = string(found[len(found)-1].Key) + "\x00"
		}
	}
	return nil
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
