// Package certtest makes certificates for tests of mutual TLS.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New makes an authority, whose errors end t.
func New(t testing.TB) *Authority {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := &Authority{t: t, certificate: template}
	text, key := a.make(template)
	a.key = key
	var err error
	if a.certificate, err = x509.ParseCertificate(text); err != nil {
		t.Fatal(err)
	}
	return a
}

// Pool has the authority and no other.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Sign makes a certificate of a user in groups, for clients and for servers of a DNS name, which may be empty.
func (a *Authority) Sign(user string, groups []string, dnsName string, notAfter time.Time) *tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user, Organization: groups}, NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if dnsName != "" {
		template.DNSNames = []string{dnsName}
	}
	text, key := a.make(template)
	return &tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

// make signs with the authority's key, or for want of one with the new one.
func (a *Authority) make(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	text, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return text, key
}

// Files are a certificate and its key as PEM.
func Files(t testing.TB, c *tls.Certificate) (certificate, key []byte) {
	t.Helper()
	text, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}
