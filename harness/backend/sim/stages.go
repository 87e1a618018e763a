package sim

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
)

// stages gives the API servers one list after another, each after all have loaded the one before, and has every object written
// anew before anything goes that may be needed to read it.
func (e *environment) stages(mine int, to encryption.List) error {
	if err := e.awaitReload(e.nodes(), mine); err != nil { // of a switch that was given up
		return err
	}
	for _, s := range e.w.seams.stages(encryption.Switch(e.told, to)) {
		if err := e.stage(mine, s); err != nil {
			return fmt.Errorf("switch to %s, with the providers %s: %w", to.Writer().Name(), s.Providers, err)
		}
	}
	return nil
}

func (e *environment) stage(mine int, s encryption.Stage) error {
	if err := s.Providers.Follows(e.told, e.left); err != nil && e.w.seams.Stages == nil {
		return err
	}
	e.configure(s.Providers)
	if err := e.awaitReload(e.nodes(), mine); err != nil {
		return err
	}
	if !s.Migrate {
		return nil
	}
	if err := e.migrate(mine); err != nil {
		return err
	}
	e.left = encryption.List{s.Providers.Writer()}
	return nil
}

// configure writes the files of all API servers.
func (e *environment) configure(providers encryption.List) {
	e.told = slices.Clone(providers)
	if !e.left.Has(providers.Writer()) {
		e.left = append(e.left, providers.Writer())
	}
	for _, n := range e.nodes() {
		n.server.envelope.configure(encryptionConfig{providers: slices.Clone(providers)})
		n.unread = true
		e.w.record("backend", &history.Encryption{Node: n.name, State: history.EncryptionTold, Providers: providers.Names()})
	}
}

// recordLoaded records, once, that an API server has what it was told.
func (e *environment) recordLoaded(n *node) {
	if n.unread && n.server.envelope.current() {
		n.unread = false
		e.w.record("backend", &history.Encryption{Node: n.name, State: history.EncryptionLoaded, Providers: n.server.envelope.wanted.providers.Names()})
	}
}

// recordTold records what the API servers were told before the scenario began, and have loaded.
func (e *environment) recordTold() {
	for _, n := range e.nodes() {
		e.recordToldTo(n)
	}
}

// recordToldTo records it of an API server that has begun with what all were told last.
func (e *environment) recordToldTo(n *node) {
	for _, state := range []string{history.EncryptionTold, history.EncryptionLoaded} {
		e.w.record("backend", &history.Encryption{Node: n.name, State: state, Providers: e.told.Names()})
	}
}
