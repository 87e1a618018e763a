package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
)

// staleness goes through the nine steps of Kubernetes' own test of KMS v2 and staleness
// (test/integration/controlplane/transformation, TestKMSv2ProviderKeyIDStaleness), which takes 84 s there.
type staleness struct{ *lab }

// rewritten updates without a change once a second, as upstream's test does, until the revision changes.
func (s staleness) rewritten(name string, was int64, within time.Duration) int64 {
	s.t.Helper()
	for began := s.w.k.Now(); s.w.k.Now().Sub(began) <= within; s.pass(time.Second) {
		if now := s.same(name, "value"); now != was {
			return now
		}
	}
	s.t.Fatalf("%s kept revision %d for %v", name, was, within)
	return 0
}

func (s staleness) kept(step, name string, was int64) {
	s.t.Helper()
	if now := s.same(name, "value"); now != was {
		s.t.Errorf("%s: revision %d became %d, expected that it stays", step, was, now)
	}
}

func (s staleness) created(name string) int64 {
	s.t.Helper()
	if err := s.write(name, "value"); err != nil {
		s.t.Fatalf("create %s: %v", name, err)
	}
	return s.w.secrets[name].revision
}

func TestKeyIDStaleness(t *testing.T) {
	for name, legacy := range map[string]bool{"a key": true, "a seed for keys": false} {
		t.Run(name, func(t *testing.T) {
			least := time.Hour
			for range 5 { // how long it takes is that of the machine's best moment
				s := staleness{newLab(t)}
				s.w.legacyKeys = legacy
				s.existed()
				s.pass(7 * time.Second)
				began := time.Now()
				s.steps()
				least = min(least, time.Since(began))
			}
			t.Logf("nine steps in %v", least)
			if least > 100*time.Millisecond {
				t.Errorf("nine steps took %v, expected at most 100ms", least)
			}
		})
	}
}

func (s staleness) steps() {
	t := s.t
	first := s.created("pod")
	s.kept("1: the same key_id", "pod", first)
	one := s.w.secrets["pod"]

	if _, err := (remote{s.w.kms}).Rotate(s.w.ctx, apiservers.RemoteKey("", "1"), 0); err != nil {
		t.Fatal(err)
	}
	s.w.kmsChanged()
	second := s.rewritten("pod", first, time.Minute)
	if two := s.w.secrets["pod"]; two.kekID == one.kekID || two.uid == one.uid {
		t.Errorf("2: a new key_id: sealed with %s under %s as before", two.uid, two.kekID)
	}
	s.kept("3: the new key_id again", "pod", second)
	delete(s.w.secrets, "pod")

	s.inject("grpc-status", map[string]any{"code": "FailedPrecondition", "text": "failed precondition - key disabled", "method": "all"})
	s.unhealthy()
	third := s.created("pod")
	s.kept("5: the plugin is down", "pod", third)

	s.w.kmsAhead = 5 * time.Minute
	expired := `encryptedDEKSource with keyID hash "` + hashOf(s.w.secrets["pod"].kekID) + `" expired at 2`
	if err := s.write("another", "value"); err == nil || !strings.Contains(err.Error(), expired) {
		t.Errorf("6: the key has expired: %v, expected %s", err, expired)
	}
	s.kept("7: the key has expired", "pod", third)
	s.sealedOnce("pod")
	s.w.kmsAhead = 0
	s.recovers()
	s.kept("8: the plugin is well again", "pod", third)

	s.w.legacyKeys = !s.w.legacyKeys
	s.rewritten("pod", third, 3*time.Minute)
}

// unhealthy waits until /healthz/kms-providers says what upstream's test waits for: the error as it is remembered.
func (s staleness) unhealthy() {
	s.t.Helper()
	const want = "internal server error: kms-provider-0: rpc error: code = FailedPrecondition desc = failed precondition - key disabled"
	for range 30 {
		if s.health() == want {
			return
		}
		s.pass(time.Second)
	}
	s.t.Errorf("4: the plugin is down, and its health is %q, expected %q", s.health(), want)
}

// sealedOnce: everything that lies there is sealed with the second key.
func (s staleness) sealedOnce(name string) {
	s.t.Helper()
	if n := s.calls(fault.Encrypt); n != 2 || s.w.secrets[name].uid != s.envelope.loaded.providers[0].key.uid {
		s.t.Errorf("7: %d keys were made, expected 2, the newer of which sealed everything", n)
	}
}

// recovers writes once a second until that succeeds, for at most three minutes.
func (s staleness) recovers() {
	s.t.Helper()
	s.release()
	for range 180 {
		if s.write("deployment", "panda") == nil {
			return
		}
		s.pass(time.Second)
	}
	s.t.Error("writes do not succeed three minutes after the plugin is well again")
}
