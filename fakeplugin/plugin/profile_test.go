package plugin

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// Whether a rotation shows is the profile's: in Status and Encrypt alike, and whatever key_id there is, everything can be
// decrypted.
func TestKeyIDOfAProfile(t *testing.T) {
	for _, name := range append(profile.Catalogue{}.Names(), "") {
		w := newWorld(t, 0)
		var p *profile.Profile
		if name != "" {
			var err error
			if p, err = (profile.Catalogue{}).Find(name); err != nil {
				t.Fatal(err)
			}
		}
		w.SetProfile(p)
		if got := w.status(t).KeyId; got != "" {
			t.Errorf("%s: key_id %q before the first contact", name, got)
		}
		w.poll(t)
		old := w.encrypt(t)
		if _, err := w.Rotate(ctx, 0); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Second)
		w.poll(t)
		now, enc := w.status(t).KeyId, w.encrypt(t)
		if enc.KeyId != now || w.KeyID(w.View().Noticed) != now || w.KeyID(w.View().Latest) != now || w.KeyID(w.View().KEK(1)) != old.KeyId {
			t.Errorf("%s: Status %q, Encrypt %q, noticed %q, latest %q, first %q", name, now, enc.KeyId, w.KeyID(w.View().Noticed), w.KeyID(w.View().Latest), w.KeyID(w.View().KEK(1)))
		}
		if changed := now != old.KeyId; changed != (p == nil || p.KeyID.ChangesOnRotation) {
			t.Errorf("%s: the rotation shows: %t", name, changed)
		}
		if w.View().Noticed.Version != 2 || w.decrypts(old) != nil || w.decrypts(enc) != nil {
			t.Errorf("%s: version %d is in use, and something cannot be decrypted", name, w.View().Noticed.Version)
		}
	}
}
