// Package certtest makes certificates for tests of mutual TLS.
package certtest

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// Authority signs certificates.
type Authority struct {
	controlplane.Authority
	t testing.TB
}

// New makes an authority, whose errors end t.
func New(t testing.TB) *Authority {
	t.Helper()
	a, err := controlplane.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{a, t}
}

// Pool has the authority and no other.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Bundle())
	return pool
}

// Client makes the certificate of a user in groups.
func (a *Authority) Client(user string, groups []string, notAfter time.Time) *tls.Certificate {
	a.t.Helper()
	text, _, err := a.Certificate(user, groups, time.Until(notAfter))
	return a.pair(text, text, err)
}

// Server makes the certificate of a server of a DNS name.
func (a *Authority) Server(name string) *tls.Certificate {
	a.t.Helper()
	certificate, key, err := a.Serving(name, name)
	return a.pair(certificate, key, err)
}

func (a *Authority) pair(certificate, key []byte, err error) *tls.Certificate {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &pair
}
