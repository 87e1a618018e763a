package sim

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// stock is a lab with a kube-apiserver as it is released: it looks at its configuration once a minute.
func stock(t *testing.T, keyIDs ...string) *lab {
	l := newLab(t, keyIDs...)
	l.w.kms2.filePoll = realKMSTimes().filePoll
	return l.started()
}

func TestAConfigurationIsTakenWithinAMinute(t *testing.T) {
	l := stock(t)
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.n.add("2").existed()
	l.envelope.configure(encryption.Of(encryption.KMS, "2", "1"))
	l.pass(59 * time.Second)
	if l.envelope.current() {
		t.Error("it was taken before the minute was over")
	}
	l.pass(2 * time.Second)
	if !l.envelope.current() {
		t.Fatal("it was not taken after a minute")
	}
	if err := l.write("new", "value"); err != nil || l.w.secrets["new"].provider != "kms-2" {
		t.Errorf("%v: expected a write by kms-2", err)
	}
	if err := l.get("old"); err != nil {
		t.Errorf("what the provider before wrote: %v", err)
	}
	if l.same("old", "value") == l.w.secrets["new"].revision-1 || l.w.secrets["old"].provider != "kms-2" {
		t.Error("an update without a change did not encrypt it anew")
	}
	if n := l.calls(fault.Encrypt); n != 3 {
		t.Errorf("%d keys were made, expected one at the start, and one for each provider of the new configuration", n)
	}
}

// A new provider that does not work keeps the old configuration in force, whatever comes after it.
func TestAConfigurationThatDoesNotWorkIsNotTaken(t *testing.T) {
	l := stock(t)
	l.n.add("2") // it does not run
	l.envelope.configure(encryption.Of(encryption.KMS, "2", "1"))
	l.pass(5 * time.Minute)
	if err := l.write("new", "value"); err != nil || l.w.secrets["new"].provider != "kms-1" || l.envelope.current() {
		t.Errorf("%v: expected a write by kms-1", err)
	}
	l.n.plugin("2").existed()
	l.pass(90 * time.Second)
	if !l.envelope.current() {
		t.Error("it was not taken after the plugin had come")
	}
	l.end(history.ProcessKilled, "")
	l.started()
	if err := l.get("new"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// What no provider in force has written cannot be read, and identity reads clear text only.
func TestWhatNoProviderWroteCannotBeRead(t *testing.T) {
	l := stock(t, "1", "2")
	if err := l.write("old", "value"); err != nil {
		t.Fatal(err)
	}
	l.envelope.configure(encryption.List{encryption.Clear(), {Type: encryption.KMS, KeyID: "2"}})
	l.pass(61 * time.Second)
	holds(t, "a read", l.get("old"), "StorageError: corrupt object", "no matching prefix found")
	if err := l.write("clear", "value"); err != nil || l.w.secrets["clear"].keyID != "" {
		t.Errorf("%v: expected clear text", err)
	}
}
