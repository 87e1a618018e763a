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
func (e *environment) migrate(mine int) error {
	until := e.w.k.Now().Add(migrationTimeout)
	for i, name := range slices.Sorted(maps.Keys(e.w.secrets)) {
		if e.w.seams.skips(name) || e.w.seams.unmigrated(e.w.apiServer) {
			continue
		}
		if err := e.rewrite(mine, i, name, until); err != nil {
			return fmt.Errorf("migrate %s: %w", e.w.encrypts.objectName(name), err)
		}
	}
	e.w.record("backend", &history.Encryption{State: history.EncryptionMigrated, Providers: e.told.Names()})
	return nil
}

// rewrite writes one object anew, through another API server at each try. One that has changed meanwhile is read again at once.
func (e *environment) rewrite(mine, try int, name string, until time.Time) error {
	for ; ; try++ {
		if err := e.superseded(mine); err != nil {
			return err
		}
		if e.w.secrets[name] == nil {
			return nil // an operator has pruned it
		}
		err := errors.New("no API server runs")
		if nodes := e.serving(); len(nodes) > 0 {
			err = e.touch(nodes[try%len(nodes)], name)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errConflict):
			continue
		case e.w.k.Now().After(until):
			return err
		}
		if err := e.w.k.Sleep(migrationRetry); err != nil {
			return err
		}
	}
}

func (e *environment) touch(n *node, name string) error {
	return e.within(requestTimeout, func(done func(error)) {
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
func (e *environment) migrateData() error {
	if err := e.turn.take(e); err != nil {
		return err
	}
	defer e.turn.give()
	if err := e.migrate(0); err != nil {
		return err
	}
	e.census()
	return nil
}

// census looks at every secret in etcd, and records by which keys they are encrypted.
func (e *environment) census() {
	counted := map[history.Under]*history.Under{}
	for _, name := range slices.Sorted(maps.Keys(e.w.secrets)) {
		s := e.w.secrets[name]
		k := history.Under{Provider: s.provider, KEKID: s.kekID}
		if counted[k] == nil {
			counted[k] = &history.Under{Provider: s.provider, KEKID: s.kekID, Example: e.w.encrypts.example(name)}
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
	e.w.record("backend", &history.Census{Resource: e.w.encrypts.name, Under: all})
}
