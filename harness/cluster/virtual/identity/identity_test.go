package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/identity"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

func made(t *testing.T) *identity.Identities {
	t.Helper()
	i, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func withToken(token string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
}

func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, other := made(t), made(t)
		shows := func(of *identity.Identities, life time.Duration) *http.Request {
			text, _, err := of.Authority.Certificate("reporter", []string{"reporters"}, life)
			if err != nil {
				t.Fatal(err)
			}
			certs, err := certutil.ParseCertsPEM(text)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Request{Header: http.Header{}, TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certs[0]}}}
		}
		u, err := i.Authenticate(shows(i, 0))
		if err != nil || u.GetName() != "reporter" || !slices.Equal(u.GetGroups(), []string{"reporters", "system:authenticated"}) {
			t.Errorf("%v, %v", u, err)
		}
		if u, err := i.Authenticate(shows(other, 0)); err == nil {
			t.Errorf("a certificate of another authority is that of %v", u)
		}
		soon := shows(i, time.Minute)
		if _, err := i.Authenticate(soon); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute + time.Second)
		if u, err := i.Authenticate(soon); err == nil {
			t.Errorf("an expired certificate is that of %v", u)
		}
		if u, err := i.Authenticate(&http.Request{Header: http.Header{}}); err != nil || u.GetName() != "system:anonymous" {
			t.Errorf("%v, %v", u, err)
		}
	})
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := made(t)
		there := true
		i.Valid = func(b identity.Bound) bool { return there && b.Pod == "p" && b.PodUID == "u" }
		token, expires, err := i.Token(identity.Bound{Namespace: "kms", Account: "reporter", Pod: "p", PodUID: "u", Node: "cp-1"}, 10*time.Minute)
		if err != nil || time.Until(expires) != 10*time.Minute {
			t.Fatalf("%v, %v", expires, err)
		}
		u, err := i.Authenticate(withToken(token))
		if err != nil || u.GetName() != "system:serviceaccount:kms:reporter" || !slices.Contains(u.GetGroups(), "system:serviceaccounts:kms") || !slices.Equal(u.GetExtra()[contract.NodeNameExtra], []string{"cp-1"}) {
			t.Errorf("%v, %v", u, err)
		}
		earlier, err := controlplane.Reissue(i.AccountKey(), token, 9*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + controlplane.TokenLeeway - time.Second)
		if _, err := i.Authenticate(withToken(earlier)); err != nil {
			t.Errorf("before the leeway is over: %v", err)
		}
		time.Sleep(2 * time.Second)
		for what, token := range map[string]string{"expired": earlier, "forged": token[:len(token)-4] + "AAAA", "no token": "admin"} {
			if u, err := i.Authenticate(withToken(token)); err == nil {
				t.Errorf("%s: %v", what, u)
			}
		}
		there = false
		if u, err := i.Authenticate(withToken(token)); err == nil {
			t.Errorf("of a pod that is gone: %v", u)
		}
	})
}

// TestLegacyToken: the token of a Secret does not expire, and ends with its Secret.
func TestLegacyToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		token, err := controlplane.SignToken(i.AccountKey(), controlplane.LegacyClaims{Issuer: controlplane.LegacyIssuer, Namespace: contract.TokenNamespace, Secret: "s", Account: "cp-1"})
		if err != nil {
			t.Fatal(err)
		}
		there := true
		i.Valid = func(b identity.Bound) bool { return there && b.Secret == "s" && b.Token == token }
		time.Sleep(365 * 24 * time.Hour)
		u, err := i.Authenticate(withToken(token))
		if err != nil || u.GetName() != contract.ReporterToken("cp-1") || !slices.Contains(u.GetGroups(), contract.TokenGroup) {
			t.Errorf("%v, %v", u, err)
		}
		there = false
		if u, err := i.Authenticate(withToken(token)); err == nil {
			t.Errorf("of a Secret that is gone: %v", u)
		}
	})
}
