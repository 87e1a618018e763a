package remotekms

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newKMS(t testing.TB, stateFile string) *KMS {
	t.Helper()
	k, err := New(Options{StateFile: stateFile})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// served is a client of k over a real socket.
func served(t testing.TB, k *KMS) *Client {
	t.Helper()
	_, c := servedAt(t, k)
	return c
}

func servedAt(t testing.TB, k *KMS) (endpoint.Endpoint, *Client) {
	t.Helper()
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "kms.sock")}
	l, err := endpoint.Listen(host.Host{}, at, endpoint.DefaultMode)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- httpjson.Serve(ctx, host.Host{}, l, Handler(k, token)) }()
	c := NewClient(host.Host{}, at, token)
	t.Cleanup(func() {
		c.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return at, c
}

const token = "of the test"

// A client without the token is refused, whatever it asks for.
func TestClientsNeedTheToken(t *testing.T) {
	at, c := servedAt(t, newKMS(t, ""))
	for _, given := range []string{"", "another"} {
		other := NewClient(host.Host{}, at, given)
		_, err1 := other.Describe(ctx, Caller{Plugin: "cp-1/1"}, "k")
		err2 := other.SetRule(ctx, Rule{Caller: "*/*", Deny: true})
		other.Close()
		for _, err := range []error{err1, err2} {
			if err == nil || !strings.Contains(err.Error(), "bearer token") {
				t.Errorf("token %q: %v", given, err)
			}
		}
	}
	if rules, err := c.Rules(ctx); err != nil || len(rules) > 0 {
		t.Errorf("rules %v, %v", rules, err)
	}
}

// each runs a test in process and over the socket: the two must not differ.
func each(t *testing.T, test func(t *testing.T, k *KMS, s Service)) {
	t.Run("in process", func(t *testing.T) { k := newKMS(t, ""); test(t, k, k) })
	t.Run("over a socket", func(t *testing.T) { k := newKMS(t, ""); test(t, k, served(t, k)) })
}

var (
	ctx = context.Background()
	me  = Caller{Plugin: "cp-1/1", UID: "uid-1"}
)

func TestPastKEKsDecryptAfterRotation(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		first, err := s.Describe(ctx, me, "key-1")
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := s.Encrypt(ctx, me, "key-1", keyring.Ref{ID: first.Current.ID}, []byte("seed"))
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Rotate(ctx, "key-1", 0)
		if err != nil || second.ID == first.Current.ID {
			t.Fatalf("rotate: %v, %v", second, err)
		}
		plain, err := s.Decrypt(ctx, me, "key-1", sealed.Ciphertext)
		if err != nil || string(plain) != "seed" {
			t.Errorf("decrypt: %q, %v", plain, err)
		}
		if again, err := s.Rotate(ctx, "key-1", 1); err != nil || again.ID != first.Current.ID {
			t.Errorf("reuse of version 1: %v, %v", again, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		if _, err := s.Describe(ctx, me, "key-1"); err != nil {
			t.Fatal(err)
		}
		encrypt := func() error {
			_, err := s.Encrypt(ctx, me, "key-1", keyring.Ref{Version: 1}, []byte("seed"))
			return err
		}
		for _, c := range []struct {
			name string
			set  func() error
			code string
		}{
			{"disabled", func() error { _, err := k.SetState("key-1", 1, keyring.Disabled, nil); return err }, keyring.CodeDisabled},
			{"deleted", func() error { _, err := k.SetState("key-1", 1, keyring.Deleted, nil); return err }, keyring.CodeDeleted},
			{"KEK denied", func() error {
				_, err := k.SetState("key-1", 1, keyring.Enabled, []keyring.Operation{keyring.Encrypt})
				return err
			}, keyring.CodeDenied},
			{"enabled", func() error { _, err := k.SetState("key-1", 1, keyring.Enabled, nil); return err }, ""},
			{"caller denied", func() error { return k.SetRule(Rule{Caller: "cp-1/*", Deny: true}) }, keyring.CodeDenied},
			{"another caller denied", func() error {
				return errors.Join(k.DeleteRule("cp-1/*"), k.SetRule(Rule{Caller: "cp-2/*", Deny: true}))
			}, ""},
			{"one of its plugins denied", func() error { return k.SetRule(Rule{Caller: "cp-1/1", Deny: true}) }, keyring.CodeDenied},
			{"another node's rules ended", func() error { return k.DeleteRule("cp-2/*") }, keyring.CodeDenied},
			{"all rules ended", func() error { return k.DeleteRule("*/*") }, ""},
		} {
			if err := c.set(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err := encrypt(); Code(err) != c.code || (c.code == "") != (err == nil) {
				t.Errorf("%s: %v, want code %q", c.name, err, c.code)
			}
		}
		if _, err := s.Encrypt(ctx, me, "key-2", keyring.Ref{Version: 1}, nil); Code(err) != CodeNoKey {
			t.Errorf("a key that does not exist: %v", err)
		}
		if _, err := s.Describe(ctx, me, "no/such name"); Code(err) != keyring.CodeInvalid {
			t.Errorf("a bad name: %v", err)
		}
	})
}

func TestCutOffIsPerCallerAndReversible(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		for _, how := range []string{CutRefuse, CutHang} {
			if err := k.SetRule(Rule{Caller: "cp-1/*", CutOff: how}); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			if _, err := s.Describe(short, me, "key-1"); !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v, want unreachable", how, err)
			}
			cancel()
			if _, err := s.Describe(ctx, Caller{Plugin: "cp-2/1"}, "key-1"); err != nil {
				t.Errorf("%s: another node: %v", how, err)
			}
			if err := k.DeleteRule("cp-1/*"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Describe(ctx, me, "key-1"); err != nil {
				t.Errorf("%s, released: %v", how, err)
			}
		}
	})
}

func TestLatency(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		const latency = 30 * time.Millisecond
		if err := errors.Join(k.SetRule(Rule{Caller: "*/*", Latency: Duration(latency / 2)}), k.SetRule(Rule{Caller: "cp-1/1", Latency: Duration(latency / 2)})); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Describe(ctx, me, "key-1"); err != nil || time.Since(began) < latency {
			t.Errorf("answered after %v, %v; want at least %v", time.Since(began), err, latency)
		}
		short, cancel := context.WithTimeout(ctx, latency/10)
		defer cancel()
		if _, err := s.Describe(short, me, "key-1"); !errors.Is(err, ErrUnreachable) {
			t.Errorf("with a deadline below the latency: %v", err)
		}
	})
}

func TestUIDReachesTheJournal(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		if _, err := s.Describe(ctx, me, "key-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Encrypt(ctx, me, "key-1", keyring.Ref{Version: 1}, []byte("seed")); err != nil {
			t.Fatal(err)
		}
		ops, _ := k.o.Journal.After(0, 10)
		last := ops[len(ops)-1]
		if last.Op != "encrypt" || last.UID != "uid-1" || last.Plugin != "cp-1/1" || last.Code != "ok" || last.KEKID == "" {
			t.Errorf("journal: %+v", ops)
		}
	})
}

func TestStateSurvivesAKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	k := newKMS(t, file)
	if _, err := k.Describe(ctx, me, "key-1"); err != nil {
		t.Fatal(err)
	}
	sealed, err := k.Encrypt(ctx, me, "key-1", keyring.Ref{Version: 1}, []byte("seed"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Rotate(ctx, "key-1", 0); err != nil {
		t.Fatal(err)
	}
	if err := k.SetRule(Rule{Caller: "cp-9/*", CutOff: CutRefuse}); err != nil {
		t.Fatal(err)
	}
	again := newKMS(t, file)
	if plain, err := again.Decrypt(ctx, me, "key-1", sealed.Ciphertext); err != nil || string(plain) != "seed" {
		t.Errorf("decrypt after a restart: %q, %v", plain, err)
	}
	if keys := again.Keys(); len(keys) != 1 || keys[0].Current.Version != 2 || len(again.Rules()) != 1 {
		t.Errorf("after a restart: %+v, %+v", keys, again.Rules())
	}
	if err := os.WriteFile(file, []byte(`{"version":9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{StateFile: file}); err == nil || !strings.Contains(err.Error(), "is not one of this KMS") {
		t.Errorf("a foreign state file: %v", err)
	}
}

func TestClientAdministersTheKMS(t *testing.T) {
	k := newKMS(t, "")
	c := served(t, k)
	if err := c.Healthy(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Describe(ctx, me, "key-1"); err != nil {
		t.Fatal(err)
	}
	if kek, err := c.SetState(ctx, "key-1", 1, keyring.Disabled, nil); err != nil || kek.State != keyring.Disabled {
		t.Errorf("SetState: %v, %v", kek, err)
	}
	if keys, err := c.Keys(ctx); err != nil || len(keys) != 1 || keys[0].Current.State != keyring.Disabled {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	rule := Rule{Caller: "cp-1/1", Latency: Duration(time.Second)}
	if err := c.SetRule(ctx, rule); err != nil {
		t.Fatal(err)
	}
	if rules, err := c.Rules(ctx); err != nil || len(rules) != 1 || rules[0] != rule {
		t.Errorf("Rules: %v, %v", rules, err)
	}
	if err := c.SetRule(ctx, Rule{Caller: "[", CutOff: "refuse"}); Code(err) != keyring.CodeInvalid {
		t.Errorf("a bad pattern: %v", err)
	}
	if err := errors.Join(c.DeleteRule(ctx, "cp-1/1")); err != nil {
		t.Error(err)
	}
	if err := c.DeleteRule(ctx, "cp-1/1"); Code(err) != CodeNoRule {
		t.Errorf("a rule that is not there: %v", err)
	}
	body, err := c.Journal(ctx, journal.Query{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 9)
	if _, err := body.Read(line); err != nil || string(line) != `{"seq":1,` {
		t.Errorf("journal: %q, %v", line, err)
	}
	_ = body.Close()
}

func TestNobodyServes(t *testing.T) {
	c := NewClient(host.Host{}, endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "none.sock")}, "")
	defer c.Close()
	if _, err := c.Describe(ctx, me, "key-1"); !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no server: %v", err)
	}
}

// TestRecreated: a key that is made again has another id under an old version, and opens nothing of before.
func TestRecreated(t *testing.T) {
	k := newKMS(t, filepath.Join(t.TempDir(), "kms.json"))
	c, ctx := served(t, k), t.Context()
	before, err := c.Describe(ctx, Caller{Plugin: "cp-1/1"}, "key")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := c.Encrypt(ctx, Caller{Plugin: "cp-1/1"}, "key", keyring.Ref{Version: 1}, []byte("seed"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.Recreate(ctx, "key")
	if err != nil || after.Version != before.Current.Version || after.ID == before.Current.ID {
		t.Errorf("it is %+v (%v) after %+v, expected the same version with another id", after, err, before.Current)
	}
	if _, err := c.Decrypt(ctx, Caller{Plugin: "cp-1/1"}, "key", sealed.Ciphertext); Code(err) != keyring.CodeCiphertext {
		t.Errorf("Decrypt of what the old one sealed: %v, expected %s", err, keyring.CodeCiphertext)
	}
	if _, err := c.Recreate(ctx, "nothing"); Code(err) != CodeNoKey {
		t.Errorf("Recreate without a key: %v, expected %s", err, CodeNoKey)
	}
}
