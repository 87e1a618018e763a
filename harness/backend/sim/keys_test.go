package sim

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// taken gives the API server a configuration and lets it load that.
func (l *lab) taken(providers ...encryption.Provider) {
	l.t.Helper()
	l.envelope.configure(providers)
	l.pass(61 * time.Second)
	if !l.envelope.current() {
		l.t.Fatalf("%v was not taken", providers)
	}
}

// A write without a change encrypts an object anew, once, when another provider or key writes by then. What is encrypted with a key
// that is not there any more cannot be read, and says so in one of two ways.
func TestKeysOfTheAPIServer(t *testing.T) {
	l := stock(t)
	cbc2, cbc3 := encryption.Provider{Type: encryption.AESCBC, KeyID: "2"}, encryption.Provider{Type: encryption.AESCBC, KeyID: "3"}
	gcm, plugin := encryption.Provider{Type: encryption.AESGCM, KeyID: "4"}, encryption.Provider{Type: encryption.KMS, KeyID: "1"}
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]encryption.Provider{{cbc2, plugin}, {cbc3, cbc2}, {gcm, cbc3}, {encryption.Clear(), gcm}, {plugin, encryption.Clear()}, {cbc2, plugin}} {
		l.taken(list...)
		if first, second := l.same("old", "value"), l.same("old", "value"); first != second || l.w.secrets["old"].provider != list[0].Name() {
			t.Errorf("%v: revisions %d and %d, under %s", list, first, second, l.w.secrets["old"].provider)
		}
	}
	l.taken(cbc3, gcm, encryption.Clear())
	holds(t, "a read", l.get("old"), "StorageError: corrupt object", "no matching key was found for the provided AES transformer")
	l.taken(gcm, encryption.Clear())
	holds(t, "a read", l.get("old"), "StorageError: corrupt object", "no matching prefix found")
}

// A write without a change that meets another write is refused, and changes nothing.
func TestAWriteWithoutAChangeMeetsAnother(t *testing.T) {
	l := stock(t, "1", "2")
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.taken(encryption.Provider{Type: encryption.KMS, KeyID: "2"}, encryption.Provider{Type: encryption.KMS, KeyID: "1"})
	var touched error
	l.until(func(done func()) {
		l.touch("old", func(err error) { touched = err; done() })
		l.w.secrets["old"] = &secret{revision: 99, value: []byte("newer"), provider: "kms-2"} // by another API server
	})
	if touched != nil && touched != errConflict {
		t.Errorf("%v, expected a conflict, or that it came later", touched)
	}
	if got := string(l.w.secrets["old"].value); got != "newer" {
		t.Errorf("the value is %q: the newer one was written over", got)
	}
}

// An API server that starts while there are secrets that it cannot read waits a minute for them, or until the plugin is back.
func TestStartWithSecretsThatCannotBeRead(t *testing.T) {
	for back, want := range map[time.Duration]time.Duration{0: time.Minute, 20 * time.Second: 31 * time.Second} {
		l := stock(t)
		if err := l.write("old", "value"); err != nil {
			t.Fatal(err)
		}
		l.plugin.end(history.ProcessKilled, "")
		l.end(history.ProcessKilled, "")
		began := l.w.k.Now()
		if back > 0 {
			l.w.k.After(back, func() { l.plugin.start(func() {}) })
		}
		l.until(func(done func()) { l.start(done) })
		if took := l.w.k.Now().Sub(began); took < want-11*time.Second || took > want+5*time.Second {
			t.Errorf("with the plugin back after %v it was up after %v, expected about %v", back, took, want)
		}
	}
}
