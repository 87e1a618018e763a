package confirm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// An API server starts without its plugin, and cannot read or write before the plugin has been there; then every key that is not
// in memory needs it.
func TestPluginThatIsLate(t *testing.T) {
	first, late := newPlugin(t).serve(t), newPlugin(t)
	_, nodes := newWorld(t, 0, first, late)
	if err := nodes[0].write("old"); err != nil {
		t.Fatal(err)
	}
	n := nodes[1]
	if err := n.write("new"); text(err) != "Internal error occurred: got unexpected nil transformer" {
		t.Errorf("a write: %v", err)
	}
	if err := n.read("old"); !strings.Contains(text(err), "StorageError: corrupt object") || !strings.Contains(text(err), "got unexpected nil transformer") {
		t.Errorf("a read: %v", err)
	}
	n.says("health without a plugin", 10*time.Second, `rpc error: code = DeadlineExceeded desc = `, n.health)
	t.Logf("its health: %s", n.health())
	late.is(func(b *behaviour) { b.fails = map[string]error{"Decrypt": errDisabled} })
	late.serve(t)
	took := n.says("writes after the plugin came", 45*time.Second, `^ok$`, func() string { return text(n.write("came")) })
	t.Logf("writes %v after the plugin came", took)
	if keys := len(n.called("Encrypt", time.Time{})); keys != 1 {
		t.Errorf("%d keys, expected 1", keys)
	}
	err := n.read("old")
	t.Logf("a read of a key that is not in memory: %v", err)
	if !strings.Contains(text(err), "failed to decrypt DEK, error: rpc error: code = FailedPrecondition desc = failed precondition - key disabled") {
		t.Errorf("a read of a key that is not in memory: %v", err)
	}
	late.is(func(b *behaviour) { b.fails = nil })
	if err := n.read("old"); err != nil {
		t.Error(err)
	}
	late.is(func(b *behaviour) { b.fails = map[string]error{"Decrypt": errDisabled} })
	if err := n.read("old"); err != nil {
		t.Errorf("a key in memory: %v", err)
	}
}

// A configuration whose plugins work is taken, with a new key for each of them; one of which a plugin does not work is not.
func TestConfigurationThatChanges(t *testing.T) {
	one, two := newPlugin(t).serve(t), newPlugin(t)
	_, nodes := newWorld(t, 500*time.Millisecond, one)
	n := nodes[0]
	if err := n.write("old"); err != nil {
		t.Fatal(err)
	}
	set := func(e controlplane.Encryption) {
		t.Helper()
		if err := n.SetEncryption(e); err != nil {
			t.Fatal(err)
		}
	}
	metrics := func() string {
		raw, err := n.admin.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	set(controlplane.Encryption{Providers: []controlplane.Provider{two.provider("2"), one.provider("1"), controlplane.Identity()}})
	n.says("a configuration with a dead plugin", time.Minute, `automatic_reloads_total\{[^}]*status="failure"`, metrics)
	if err := n.write("meanwhile"); err != nil || len(one.called("Encrypt", time.Time{})) < 1 {
		t.Errorf("%v, expected that the configuration before goes on", err)
	}
	if got := n.health(); got != "ok" {
		t.Errorf("health: %s, expected ok: nobody is told", got)
	}
	began := time.Now()
	two.serve(t)
	n.says("a configuration whose plugins work", time.Minute, `automatic_reloads_total\{[^}]*status="success"`, metrics)
	if keys := len(two.called("Encrypt", began)); keys != 1 {
		t.Errorf("%d keys of the new provider, expected 1", keys)
	}
	if keys := len(one.called("Encrypt", time.Time{})); keys < 2 {
		t.Errorf("%d keys of the provider that was there, expected one more", keys)
	}
	set(controlplane.Encryption{Providers: []controlplane.Provider{controlplane.Identity(), two.provider("2")}})
	n.says("a provider that has gone", time.Minute, `StorageError: corrupt object.*no matching prefix found`, func() string { return text(n.read("old")) })
	t.Logf("a read without its provider: %v", n.read("old"))
}

// An API server that starts while etcd has secrets that it cannot read is not live for a minute: it waits for its storage, and then goes on
// without.
func TestStartWithSecretsThatCannotBeRead(t *testing.T) {
	p := newPlugin(t).serve(t)
	_, nodes := newWorld(t, 0, p)
	n := nodes[0]
	if err := n.write("old"); err != nil {
		t.Fatal(err)
	}
	if err := n.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := n.Start(ctx, controlplane.Live); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("live after %v", took)
	if took < 55*time.Second {
		t.Errorf("live after %v, expected after a minute", took)
	}
	if err := n.read("old"); !strings.Contains(text(err), "StorageError: corrupt object") {
		t.Errorf("a read: %v", err)
	}
}
