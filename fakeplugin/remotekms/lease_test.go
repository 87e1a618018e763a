package remotekms

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// The decisions about leases: which calls are allowed when, and in whose words others are refused.
func TestLease(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	terms := Terms{TTL: Duration(6 * time.Second), Longest: Duration(10 * time.Second)}
	lease, err := Grant("a", terms, "", at(0))
	if err != nil || lease != (Lease{ID: "a", From: at(0), Expires: at(6), Until: at(10)}) {
		t.Fatalf("%+v, %v", lease, err)
	}
	if _, err := Grant("a", terms, "certificate-expired", at(0)); Code(err) != "log-in/certificate-expired" {
		t.Errorf("a log-in that is refused: %v", err)
	}
	for _, test := range []struct {
		name  string
		lease Lease
		id    string
		now   int
		code  string
	}{
		{"fresh", lease, "a", 0, ""},
		{"just before its end", lease, "a", 5, ""},
		{"at its end", lease, "a", 6, CodeLease},
		{"of another log-in", lease, "b", 1, CodeLease},
		{"revoked", Lease{}, "a", 1, CodeLease},
		{"none", Lease{}, "", 1, CodeLease},
	} {
		if got := Code(test.lease.Usable(test.id, at(test.now))); got != test.code {
			t.Errorf("%s: code %q, want %q", test.name, got, test.code)
		}
	}
	for _, test := range []struct {
		name         string
		now, expires int
		code         string
	}{
		{"half way", 3, 9, ""},
		{"not beyond the longest time", 5, 10, ""},
		{"too late", 6, 0, CodeLease},
	} {
		got, err := lease.Renewed("a", terms, at(test.now))
		if Code(err) != test.code || err == nil && (got.Expires != at(test.expires) || got.From != at(test.now) || got.Until != lease.Until) {
			t.Errorf("renewed %s: %+v, %v", test.name, got, err)
		}
	}
}

// A caller under a lease is served while that is usable; one that has none is not asked for it.
func TestLeases(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		terms := Terms{TTL: Duration(time.Hour), Longest: Duration(2 * time.Hour)}
		lease, err := s.Lease(ctx, me, terms)
		if err != nil || lease.ID == "" {
			t.Fatalf("%+v, %v", lease, err)
		}
		under := me
		under.Lease = lease.ID
		describe := func(c Caller) string { _, err := s.Describe(ctx, c, "key-1"); return Code(err) }
		if a, b := describe(under), describe(me); a != "" || b != "" {
			t.Errorf("with a lease %q, without %q", a, b)
		}
		if again, err := s.Lease(ctx, under, terms); err != nil || again.ID != lease.ID || again.Until != lease.Until {
			t.Errorf("renewed: %+v, %v", again, err)
		}
		// An expired credential leaves the lease, a revoked one does not.
		if err := k.SetRule(Rule{Caller: "cp-1/*", LogIn: "secret-id-expired"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lease(ctx, me, terms); Code(err) != CodeLogIn+"secret-id-expired" || describe(under) != "" {
			t.Errorf("expired: log-in %v, call %q", err, describe(under))
		}
		if err := k.SetRule(Rule{Caller: "cp-1/*", LogIn: RefusedAsEver, Revoke: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lease(ctx, under, terms); Code(err) != CodeLease || describe(under) != CodeLease {
			t.Errorf("revoked: renewal %v, call %q", err, describe(under))
		}
		if err := k.DeleteRule("cp-1/*"); err != nil {
			t.Fatal(err)
		}
		if got := describe(under); got != CodeLease {
			t.Errorf("the old lease after a new credential: %q", got)
		}
		again, err := s.Lease(ctx, me, terms)
		if under.Lease = again.ID; err != nil || describe(under) != "" || again.ID == lease.ID {
			t.Errorf("a new log-in: %+v, %v", again, err)
		}
	})
}

// TestThrottle: a rule limits the log-ins and the calls of each caller, and the KMS counts all log-ins.
func TestThrottle(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		if _, err := s.Describe(ctx, me, "key-1"); err != nil {
			t.Fatal(err)
		}
		if err := k.SetRule(Rule{Caller: "cp-1/*", LogInsPerMinute: 2, CallsPerSecond: 1}); err != nil {
			t.Fatal(err)
		}
		terms := Terms{TTL: Duration(time.Hour), Longest: Duration(time.Hour)}
		for n, want := range []string{"", "", CodeThrottled} {
			if _, err := s.Lease(ctx, me, terms); Code(err) != want {
				t.Errorf("log-in %d: %v, want code %q", n+1, err, want)
			}
		}
		if k.LogIns() != 3 {
			t.Errorf("%d log-ins, want 3", k.LogIns())
		}
		encrypt := func(c Caller) string {
			_, err := s.Encrypt(ctx, c, "key-1", keyring.Ref{Version: 1}, []byte("seed"))
			return Code(err)
		}
		if first, second, other := encrypt(me), encrypt(me), encrypt(Caller{Plugin: "cp-2/1"}); first != "" || second != CodeThrottled || other != "" {
			t.Errorf("calls: %q, %q, of another caller %q", first, second, other)
		}
	})
}

// A certificate is as good as its times, and a rule for one credential leaves the other.
func TestCertificates(t *testing.T) {
	each(t, func(t *testing.T, k *KMS, s Service) {
		terms := Terms{TTL: Duration(time.Hour), Longest: Duration(time.Hour), Certificate: Duration(time.Hour)}
		lease, err := s.Lease(ctx, me, terms)
		if err != nil || !lease.Certificate.Usable(lease.From) || lease.Certificate.Due(lease.From) || !lease.Certificate.Due(lease.From.Add(40*time.Minute)) {
			t.Fatalf("%+v, %v", lease, err)
		}
		certified, expired := me, me
		certified.Certificate, expired.Certificate = lease.Certificate, Certificate{From: lease.From.Add(-time.Hour), Expires: lease.From}
		if err := k.SetRule(Rule{Caller: "*/*", LogIn: RefusedAsEver, By: ByAppRole}); err != nil {
			t.Fatal(err)
		}
		for want, c := range map[string]Caller{"": certified, CodeLogIn + RefusedAsEver: me, CodeLogIn + RefusedCertificate: expired} {
			if _, err := s.Lease(ctx, c, terms); Code(err) != want {
				t.Errorf("%+v: %v, want %q", c.Certificate, err, want)
			}
		}
		if err := k.SetRule(Rule{Caller: "*/*", By: "password"}); Code(err) != "invalid" {
			t.Errorf("a rule of an unknown credential: %v", err)
		}
	})
}
