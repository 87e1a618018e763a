package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	// persistTimeout bounds a request that is made again until it succeeds.
	persistTimeout = 30 * time.Second
	// migrationTimeout bounds the rewriting of every object, and migrationRetry is how long one waits that could not be written.
	migrationTimeout = 8 * time.Minute
	migrationRetry   = 100 * time.Millisecond
)

// errConflict is the answer to a write of a version that is not the newest any more.
var errConflict = errors.New("the object has been modified")

// migrate writes every secret anew, as a storage migration does. All API servers encrypt alike by now, so whatever is created from
// here on needs no migration.
func (ds *dataset) migrate(mine int) error {
	until := ds.w.k.Now().Add(migrationTimeout)
	for i, name := range slices.Sorted(maps.Keys(ds.w.secrets)) {
		if ds.w.hooks.skips(name) || ds.w.hooks.unmigrated(ds.w.apiServer) {
			continue
		}
		if err := ds.rewrite(mine, i, name, until); err != nil {
			return fmt.Errorf("migrate %s: %w", ds.w.encrypts.objectName(name), err)
		}
	}
	ds.w.record("backend", &history.Encryption{State: history.EncryptionMigrated, Providers: ds.e.switching.configured.Names()})
	return nil
}

// rewrite writes one object anew, through another API server at each try. One that has changed meanwhile is read again at once.
func (ds *dataset) rewrite(mine, try int, name string, until time.Time) error {
	for ; ; try++ {
		if err := ds.e.switching.superseded(mine); err != nil {
			return err
		}
		if ds.w.secrets[name] == nil {
			return nil // an operator has pruned it
		}
		err := errors.New("no API server runs")
		if nodes := ds.e.serving(); len(nodes) > 0 {
			err = ds.touch(nodes[try%len(nodes)], name)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errConflict):
			continue
		case ds.w.k.Now().After(until):
			return err
		}
		if err := ds.w.k.Sleep(migrationRetry); err != nil {
			return err
		}
	}
}

func (ds *dataset) touch(n *node, name string) error {
	return ds.e.within(requestTimeout, func(done func(error)) {
		n.through(func(s *server, done func(error)) { s.touch(name, done) }, done)
	})
}

// touch writes a secret without a change. One that would be encrypted as it is keeps its revision.
func (s *server) touch(name string, done func(error)) {
	s.work(done, func() {
		s.read(name, func(stored *secret, err error) {
			switch now := s.w.secrets[name]; {
			case err != nil:
				done(err)
			case now != stored:
				done(errConflict)
			case !s.envelope.stale(stored):
				done(nil)
			default:
				_, err := s.put(verbUpdate, name, stored.value)
				done(err)
			}
		})
	})
}

// migrateData is a storage migration without a switch: after a rotation nothing is left under the old KEK.
func (ds *dataset) migrateData() error {
	if err := ds.e.topology.turn.take(ds.e); err != nil {
		return err
	}
	defer ds.e.topology.turn.give()
	if err := ds.migrate(0); err != nil {
		return err
	}
	ds.takeInventory()
	return nil
}

// takeInventory looks at every secret in etcd, and records by which keys they are encrypted.
func (ds *dataset) takeInventory() {
	ds.w.record("backend", &history.StorageInventory{Under: ds.under()})
}

// under are the keys by which the secrets in etcd are encrypted.
func (ds *dataset) under() []history.Under {
	counted := map[history.Under]*history.Under{}
	for _, name := range slices.Sorted(maps.Keys(ds.w.secrets)) {
		s := ds.w.secrets[name]
		k := history.Under{Provider: s.provider, KEKID: s.kekID}
		if counted[k] == nil {
			counted[k] = &history.Under{Provider: s.provider, KEKID: s.kekID, Example: ds.w.encrypts.example(name)}
		}
		counted[k].Count++
	}
	all := []history.Under{}
	for _, u := range counted {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b history.Under) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.KEKID, b.KEKID))
	})
	return all
}
