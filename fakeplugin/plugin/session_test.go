package plugin

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// When a plugin logs in, and when it renews.
func TestDecide(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	lease := func(from, expires, until int) Session {
		return Session{Lease: remotekms.Lease{ID: "a", From: at(from), Expires: at(expires), Until: at(until)}}
	}
	certified := lease(0, 6, 24)
	certified.Certificate = remotekms.Certificate{From: at(-2), Expires: at(6)}
	for _, test := range []struct {
		name string
		s    Session
		now  int
		want Act
	}{
		{"nothing yet", Session{}, 0, ActLogIn},
		{"refused before", Session{Refused: 3}, 0, ActLogIn},
		{"fresh", lease(0, 6, 24), 2, ""},
		{"half of its time is over", lease(0, 6, 24), 3, ActRenew},
		{"expired", lease(0, 6, 24), 6, ActLogIn},
		{"renewed for the last time", lease(18, 24, 24), 20, ""},
		{"no renewal moves its end", lease(18, 24, 24), 21, ActLogIn},
		{"never renewed", lease(0, 12, 12), 6, ActLogIn},
		{"half of the time of its certificate is over", certified, 2, ActLogIn},
	} {
		if got := Decide(test.s, at(test.now)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A plugin of Vault renews its token and logs in again, goes on with the token that it has after its credential has expired, says in Vault's words that
// the log-in is refused, and logs in with a new credential without a restart.
func TestVaultLogsIn(t *testing.T) {
	w := newWorld(t, 0)
	vault, err := profile.Catalogue{}.Find("vault")
	if err != nil {
		t.Fatal(err)
	}
	w.SetProfile(vault)
	poll := func(d time.Duration) { // five times a second, as Run does
		for range d / DefaultPoll {
			w.clock.Step(DefaultPoll)
			_ = w.Poll(ctx)
		}
	}
	refused := func(when, text string) {
		t.Helper()
		_, asked := w.Status(ctx, nil)
		_, used := w.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "u", Plaintext: []byte("seed")})
		for _, err := range []error{asked, used} {
			if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", when, err, text)
			}
		}
	}
	healthy := func(when string) {
		t.Helper()
		if s, err := w.Status(ctx, nil); err != nil || s.Healthz != Healthy {
			t.Fatalf("%s: %v, %v", when, s, err)
		}
		if err := w.decrypts(w.encrypt(t)); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	rule := func(r remotekms.Rule) {
		t.Helper()
		if err := w.kms.SetRule(r); err != nil {
			t.Fatal(err)
		}
	}
	w.poll(t)
	healthy("at the start")
	for range 10 {
		poll(vault.Lease.Longest / 7)
		healthy("after renewals and log-ins")
	}
	rule(remotekms.Rule{Caller: "cp-1/*", LogIn: "certificate-expired"})
	healthy("with the token that there is")
	poll(vault.Lease.Longest)
	refused("after its end", "no client certificate supplied")
	if err := w.kms.DeleteRule("cp-1/*"); err != nil {
		t.Fatal(err)
	}
	poll(DefaultPoll)
	healthy("with a new certificate")
	rule(remotekms.Rule{Caller: "cp-1/*", LogIn: remotekms.RefusedAsEver, Revoke: true})
	poll(DefaultPoll)
	refused("when it was revoked", "invalid role or secret ID")
	if err := w.kms.DeleteRule("cp-1/*"); err != nil {
		t.Fatal(err)
	}
	healthyAgain := w.encrypt(t) // a call logs in, too
	poll(DefaultPoll)
	if err := w.decrypts(healthyAgain); err != nil {
		t.Error(err)
	}
}

// A plugin that does not log in again is refused in the words for a token that is lost.
func TestLostLease(t *testing.T) {
	w := newWorld(t, 0)
	vault, err := profile.Catalogue{}.Find("vault")
	if err != nil {
		t.Fatal(err)
	}
	w.SetProfile(vault)
	w.poll(t)
	w.o.Decide = func(Session, time.Time) Act { return "" }
	if err := w.kms.SetRule(remotekms.Rule{Caller: "*/*", LogIn: remotekms.RefusedAsEver, Revoke: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Poll(ctx); remotekms.Code(err) != remotekms.CodeLease {
		t.Errorf("poll: %v", err)
	}
	if _, err := w.Status(ctx, nil); err == nil || !strings.Contains(err.Error(), "invalid token") {
		t.Errorf("status: %v", err)
	}
}
