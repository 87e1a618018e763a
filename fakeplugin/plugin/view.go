package plugin

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// View is what a plugin knows of its remote key. The zero value knows nothing.
type View struct {
	Noticed keyring.KEK   // used for Encrypt and named in Status; no ID before the first contact
	Latest  keyring.KEK   // current in the remote KMS; noticed after the lag
	Seen    time.Time     // when Latest was first seen
	KEKs    []keyring.KEK // every KEK that was ever seen
	Problem string        // why the plugin is not healthy; "" if it is
	Code    string        // of the remote KMS's refusal, if that is the problem
}

// observe is the view after the KMS described the key at now. The first contact is noticed at once: a plugin that
// starts has no older KEK to go on with.
func (v View) observe(key remotekms.Key, now time.Time, lag time.Duration) View {
	if key.Current.ID != v.Latest.ID {
		v.Seen = now
	}
	v.Latest, v.KEKs = key.Current, key.KEKs
	if v.Noticed.ID == "" || now.Sub(v.Seen) >= lag {
		v.Noticed = v.Latest
	}
	v.Problem, v.Code = key.Denied, ""
	for _, kek := range key.KEKs {
		if kek.ID == v.Noticed.ID {
			v.Noticed = kek // its state may have changed
		}
	}
	for _, op := range []keyring.Operation{keyring.Encrypt, keyring.Decrypt} {
		if err := v.Noticed.Usable(op); err != nil && v.Problem == "" {
			v.Problem = err.Error()
		}
	}
	return v
}

// fail is the view after the KMS could not be asked. What was noticed stays: it is still the plugin's key_id.
func (v View) fail(err error) View {
	v.Problem, v.Code = err.Error(), remotekms.Code(err)
	return v
}

// KEK is a KEK by its version, without an id if it was never seen.
func (v View) KEK(version int) keyring.KEK {
	if i := slices.IndexFunc(v.KEKs, func(k keyring.KEK) bool { return k.Version == version }); i >= 0 {
		return v.KEKs[i]
	}
	return keyring.KEK{}
}
