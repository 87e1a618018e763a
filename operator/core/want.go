package core

import (
	"fmt"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// want sees to what is wanted and not so: another key, or another plugin for the same. It says whether it has done something. No key is
// being promoted, and all API servers have the newest configuration.
func (d *decision) want() bool {
	w := d.Wanted
	if w.Invalid != "" || w.Wanted == d.top.Wanted() {
		return false
	}
	other := w.OtherKey(d.top.Wanted())
	if d.top.ID == revision.Plain && w.Type == config.Identity {
		return false
	}
	d.at(StagePreparing, "%s", describe(w.Wanted))
	if w.Type == config.KMS && !d.preflight() {
		return false
	}
	if other && d.top.Type == config.KMS && !d.usable() {
		return false // what cannot be read cannot be migrated
	}
	if !other {
		k := d.top
		k.Plugin = w.KMS
		d.plan.do(UpdateKey{k})
		return true
	}
	d.plan.do(CreateKey{d.newKey()})
	return true
}

func (d *decision) newKey() revision.Key {
	k := revision.Key{ID: d.top.ID + 1, Type: d.Wanted.Type, Plugin: d.Wanted.KMS, Reason: "encryption-mode-changed"}
	switch {
	case d.top.ID == revision.Plain:
		k.Reason = "key-does-not-exist"
	case d.Wanted.Type == config.KMS && d.top.Type == config.KMS:
		k.Reason = "kms-config-changed"
	}
	if k.Type == config.KMS {
		k.Initial = d.Preflight.KEK
	}
	return k
}

// preflight says whether the configuration that is wanted, and no other one, passed the check.
func (d *decision) preflight() bool {
	if len(d.Wanted.Missing) > 0 {
		d.detail = "credentials are missing: " + list(d.Wanted.Missing)
		return false
	}
	if d.checked() {
		return true
	}
	p := d.Preflight
	d.detail = "the configuration is checked before it is used"
	if rest := p.At.Add(d.Retry).Sub(d.now); p.Hash == d.asked.Hash() && !p.OK && rest > 0 {
		d.detail = "the check failed and is repeated: " + p.Message
		d.plan.wake(rest)
		return false
	}
	d.plan.do(RunPreflight{d.asked.KMS})
	return false
}

// checked reports whether the requested configuration, with the present content of its credentials, has passed the pre-flight check.
func (d *decision) checked() bool {
	p := d.Preflight
	return p.Hash == d.asked.Hash() && p.OK && d.now.Sub(p.At) <= d.Valid
}

// mend takes up other settings for the newest key at any stage while its plugin cannot start somewhere: nothing else might end that. It says
// whether it has done something.
func (d *decision) mend() bool {
	p, there := d.plugins.Of(d.top.ID)
	if !there || d.Wanted.Invalid != "" || d.Wanted.OtherKey(d.top.Wanted()) || len(d.waits(revision.Plugin{KeyID: d.top.ID, Config: p})) == 0 {
		return false
	}
	return d.want()
}

// recheck has the configuration that is in force checked again when its credentials have other content.
func (d *decision) recheck() {
	w := d.Wanted
	if w.Invalid != "" || w.Type != config.KMS || len(w.Missing) > 0 || w.Wanted != d.top.Wanted() {
		return
	}
	if p, there := d.plugins.Of(d.top.ID); there && p.WithoutContent() == w.KMS && p.Content != d.asked.KMS.Content {
		d.at(StagePlugins, "the credentials have other content")
		d.preflight()
	}
}

func describe(w config.Wanted) string {
	if w.Type != config.KMS {
		return string(w.Type)
	}
	return fmt.Sprintf("%s with %s", w.Type, w.KMS.Provider)
}
