package sim

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// stages gives the API servers one list after another, each after all have loaded the one before, and has every object written
// anew before anything goes that may be needed to read it.
func (sw *encryptionSwitch) stages(mine int, to encryption.List) error {
	if err := sw.awaitReload(sw.e.nodes(), mine); err != nil { // of a switch that was given up
		return err
	}
	for _, s := range sw.w.hooks.stages(encryption.Switch(sw.configured, to)) {
		if err := sw.stage(mine, s); err != nil {
			return fmt.Errorf("switch to %s, with the providers %s: %w", to.Writer().Name(), s.Providers, err)
		}
	}
	return nil
}

func (sw *encryptionSwitch) stage(mine int, s encryption.Stage) error {
	if err := s.Providers.Follows(sw.configured, sw.left); err != nil && sw.w.hooks.Stages == nil {
		return err
	}
	sw.configure(s.Providers)
	if err := sw.awaitReload(sw.e.nodes(), mine); err != nil {
		return err
	}
	if !s.Migrate {
		return nil
	}
	if err := sw.e.data.migrate(mine); err != nil {
		return err
	}
	sw.left = encryption.List{s.Providers.Writer()}
	return nil
}

// configure writes the files of all API servers.
func (sw *encryptionSwitch) configure(providers encryption.List) {
	sw.configured = slices.Clone(providers)
	if !sw.left.Has(providers.Writer()) {
		sw.left = append(sw.left, providers.Writer())
	}
	for _, n := range sw.e.nodes() {
		n.server.envelope.configure(slices.Clone(providers))
		n.unread = true
		sw.w.record("backend", &history.Encryption{Node: n.name, State: history.EncryptionConfigured, Providers: providers.Names()})
	}
}

// recordLoaded records, once, that an API server has what it was told.
func (sw *encryptionSwitch) recordLoaded(n *node) {
	if n.unread && n.server.envelope.current() {
		n.unread = false
		sw.w.record("backend", &history.Encryption{Node: n.name, State: history.EncryptionLoaded, Providers: n.server.envelope.wanted.Names()})
	}
}

// recordConfigured records what the API servers were told before the scenario began, and have loaded.
func (sw *encryptionSwitch) recordConfigured() {
	for _, n := range sw.e.nodes() {
		sw.recordConfiguredOn(n)
	}
}

// recordConfiguredOn records it of an API server that has begun with what all were told last.
func (sw *encryptionSwitch) recordConfiguredOn(n *node) {
	for _, state := range []string{history.EncryptionConfigured, history.EncryptionLoaded} {
		sw.w.record("backend", &history.Encryption{Node: n.name, State: state, Providers: sw.configured.Names()})
	}
}
