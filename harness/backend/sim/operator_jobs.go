package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

// migrate begins an attempt, unless it runs already.
func (s *shift) migrate(a core.Attempt) {
	if s.migration.Runs() && s.migration.Result.Attempt == a {
		return
	}
	serial := s.migration.Begin(core.Migration{Attempt: a})
	s.k.Go(func() {
		result := core.Migration{Attempt: a, Done: true}
		if err := s.o.e.pods.rewrite(s.ended); err != nil {
			result.Done, result.Failed = false, err.Error()
		}
		if s.ended() == nil {
			s.migration.End(serial, result)
			s.notify()
		}
	})
}

// rewrite writes everything anew, unless it is given up, and looks at the outcome in etcd. All API servers encrypt alike by now, so whatever is
// created from here on needs no migration. Another one that begins meanwhile takes over.
func (p *pods) rewrite(givenUp func() error) error {
	e := p.e
	e.switching.switches++
	mine, until := e.switching.switches, e.w.k.Now().Add(migrationTimeout)
	for i, name := range slices.Sorted(maps.Keys(e.w.secrets)) {
		if err := givenUp(); err != nil {
			return err
		}
		if e.w.hooks.skips(name) || e.w.hooks.unmigrated(e.w.apiServer) {
			continue
		}
		if err := e.data.rewrite(mine, i, name, until); err != nil {
			return fmt.Errorf("migrate %s: %w", e.w.encrypts.objectName(name), err)
		}
	}
	if err := givenUp(); err != nil {
		return err
	}
	e.w.record("backend", &history.Encryption{State: history.EncryptionMigrated, Providers: p.newest().config.Names()})
	e.data.takeInventory()
	return nil
}

// check begins a pre-flight check, unless one for the same configuration runs already.
func (s *shift) check(c config.Plugin) {
	hash := config.Wanted{Type: config.KMS, KMS: c}.Hash()
	if s.preflight.Runs() && s.preflight.Result.Hash == hash {
		return
	}
	serial := s.preflight.Begin(core.Preflight{Hash: hash, Message: "it is under way"})
	s.k.Go(func() {
		result := s.try(c, hash)
		if s.ended() == nil {
			s.preflight.End(serial, result)
			s.notify()
		}
	})
}

// try starts a plugin on no node, for a check of its configuration, and ends it.
func (s *shift) try(c config.Plugin, hash string) core.Preflight {
	if why := operated.CannotStart("", c.Image); why != "" {
		return core.Preflight{Hash: hash, Message: why, At: s.k.Now()}
	}
	t, err := newTrial(s, c)
	if err == nil {
		err = t.start()
	}
	if err != nil {
		return core.Preflight{Hash: hash, Message: err.Error(), At: s.k.Now()}
	}
	defer t.end()
	return preflight.Check(t.ctx, t, hash, preflight.Options{Time: t, Random: bytesOf{s.k.Rand()}, UID: s.o.w.uid, Pause: exchange.Pause, Call: exchange.CheckCall(t.limit)})
}
