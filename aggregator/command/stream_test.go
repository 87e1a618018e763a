package command

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/controlplane/certtest"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// streamFiles are flags with files that an authority signed.
func streamFiles(t *testing.T, a *certtest.Authority) StreamOptions {
	t.Helper()
	dir := t.TempDir()
	o := StreamOptions{Address: "127.0.0.1:0", Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"), Contract: string(publish.HealthReports)}
	certificate, key, err := a.Serving("aggregator", contract.AggregatorServerName)
	if err != nil {
		t.Fatal(err)
	}
	write(t, o.Certificate, certificate)
	write(t, o.Key, key)
	write(t, o.ClientCA, a.Bundle())
	return o
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNoStreams(t *testing.T) {
	if s, err := Defaults().Stream.load(); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// Files that cannot be used are named with their flags at the start.
func TestUnusableStreamFiles(t *testing.T) {
	a := certtest.New(t)
	for want, spoil := range map[string]func(o *StreamOptions){
		"--stream-certificate and --stream-key": func(o *StreamOptions) { o.Key = o.ClientCA },
		"--stream-client-ca: open":              func(o *StreamOptions) { o.ClientCA += ".none" },
		"no PEM certificate in it":              func(o *StreamOptions) { o.ClientCA = o.Key },
	} {
		o := streamFiles(t, a)
		spoil(&o)
		if _, err := o.load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// handshake is the errors of a server and of a client, which reads until the server has made up its mind.
func handshake(server, client *tls.Config) (served, asked error) {
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		_ = a.Close()
		done <- err
	}()
	asked = c.Handshake()
	_, _ = c.Read(make([]byte, 1)) // an alert
	_ = b.Close()
	return <-done, asked
}

// S1-03: a client without a certificate of the authority is refused by TLS. A renewed authority and a renewed certificate are used without a restart.
func TestStreamTLS(t *testing.T) {
	a, other := certtest.New(t), certtest.New(t)
	o := streamFiles(t, a)
	s, err := o.load()
	if err != nil || s.Form != publish.HealthReports || s.Address != o.Address {
		t.Fatalf("%+v, %v", s, err)
	}
	client := func(a, signer *certtest.Authority) *tls.Config {
		c := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: a.Pool(), ServerName: contract.AggregatorServerName}
		if signer != nil {
			certificate := signer.Client(contract.ReporterIdentity("cp-1"), []string{contract.ReporterGroup}, time.Now().Add(time.Hour))
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
		}
		return c
	}
	for name, c := range map[string]struct {
		signer *certtest.Authority
		ok     bool
	}{"a reporter": {a, true}, "no certificate": {nil, false}, "another authority": {other, false}} {
		if served, asked := handshake(s.TLS, client(a, c.signer)); (served == nil) != c.ok || asked != nil {
			t.Errorf("%s: the server says %v, the client %v", name, served, asked)
		}
	}
	renewed := streamFiles(t, other)
	for from, to := range map[string]string{renewed.Certificate: o.Certificate, renewed.Key: o.Key, renewed.ClientCA: o.ClientCA} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, text)
	}
	if served, asked := handshake(s.TLS, client(other, other)); served != nil || asked != nil {
		t.Errorf("after a renewal: the server says %v, the client %v", served, asked)
	}
	if served, _ := handshake(s.TLS, client(other, a)); served == nil {
		t.Error("the authority of before is still accepted")
	}
	old := client(other, other)
	old.MaxVersion, old.MinVersion = tls.VersionTLS12, tls.VersionTLS12
	if served, _ := handshake(s.TLS, old); served == nil {
		t.Error("TLS 1.2 is accepted")
	}
}
