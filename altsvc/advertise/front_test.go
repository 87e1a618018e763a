package advertise

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/altsvc"
)

// authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	made := a.sign(template)
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate of a server and of a client at once.
func (a *authority) issue(name string, groups ...string) tls.Certificate {
	a.t.Helper()
	return a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{altsvc.DefaultAuthority}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// behindFront is an API server, with the Front before it.
type behindFront struct {
	t         *testing.T
	authority *authority
	server    *httptest.Server
	front     *Front
}

func newBehindFront(t *testing.T, h http.HandlerFunc) *behindFront {
	t.Helper()
	b := &behindFront{t: t, authority: newAuthority(t, "cluster"), server: httptest.NewUnstartedServer(h)}
	proxies := newAuthority(t, "front proxies")
	both := b.authority.pool.Clone()
	both.AddCert(proxies.cert)
	b.server.EnableHTTP2 = true
	b.server.TLS = &tls.Config{Certificates: []tls.Certificate{b.authority.issue("apiserver")}, ClientCAs: both, ClientAuth: tls.VerifyClientCertIfGiven}
	b.server.StartTLS()
	t.Cleanup(b.server.Close)
	var err error
	b.front, err = NewFront(FrontOptions{
		Upstream: b.server.Listener.Addr().String(), Serving: b.authority.issue("apiserver"), Authority: b.authority.pool, Proxy: proxies.issue("proxy"),
		Field: Options{Enabled: true, Ready: func() []netip.AddrPort { return addresses("127.0.0.1:1") }, Subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Allowed: everyone},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.front.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *behindFront) client(certificates ...tls.Certificate) *http.Client {
	config := &tls.Config{RootCAs: b.authority.pool, ServerName: altsvc.DefaultAuthority}
	if len(certificates) > 0 { // sent whatever the server asks for
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (b *behindFront) ask(ctx context.Context, c *http.Client, change func(*http.Request)) (answer, field string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.front.Addr()+"/api", nil)
	if err != nil {
		return "", "", err
	}
	if change != nil {
		change(r)
	}
	res, err := c.Do(r)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), res.Header.Get("Alt-Svc"), err
}

// S4-01: the API server learns whose request it is, and the client gets the field. Nobody can pretend to be another.
func TestFrontSpeaksForItsClients(t *testing.T) {
	b := newBehindFront(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s by %s: %s %v %s", r.TLS.PeerCertificates[0].Subject.CommonName, r.Proto, r.Header.Get("X-Remote-User"), r.Header.Values("X-Remote-Group"), r.Header.Get("Authorization"))
	})
	pretends := func(r *http.Request) {
		r.Header.Set("X-Remote-User", "admin")
		r.Header.Set("X-Remote-Group", "system:masters")
		r.Header.Set("X-Remote-Extra-Scope", "all")
	}
	token := func(r *http.Request) { pretends(r); r.Header.Set("Authorization", "Bearer t") }
	reporter := b.client(b.authority.issue("reporter:cp-1", "nodes", "reporters"))
	for name, test := range map[string]struct {
		client *http.Client
		change func(*http.Request)
		want   string
	}{
		"certificate": {reporter, nil, "proxy by HTTP/2.0: reporter:cp-1 [nodes reporters] "},
		"pretends":    {reporter, pretends, "proxy by HTTP/2.0: reporter:cp-1 [nodes reporters] "},
		"token":       {b.client(), token, "proxy by HTTP/2.0:  [] Bearer t"},
		"anonymous":   {b.client(), pretends, "proxy by HTTP/2.0: system:anonymous [system:unauthenticated] "},
	} {
		got, field, err := b.ask(t.Context(), test.client, test.change)
		if err != nil || got != test.want || !strings.Contains(field, `h2="127.0.0.1:1"`) {
			t.Errorf("%s: %q, field %q, %v; want %q", name, got, field, err, test.want)
		}
	}
	if _, _, err := b.ask(t.Context(), b.client(newAuthority(t, "stranger").issue("reporter:cp-1")), nil); err == nil {
		t.Error("a client with a certificate of another authority got an answer")
	}
}

// The first requests of a client may come together: they share its one connection to the API server.
func TestFrontHasOneConnectionForAClient(t *testing.T) {
	connections := make(chan string, 100)
	b := newBehindFront(t, func(_ http.ResponseWriter, r *http.Request) { connections <- r.RemoteAddr })
	client := b.client(b.authority.issue("reporter:cp-1"))
	client.Transport.(*http.Transport).MaxConnsPerHost = 1
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if _, _, err := b.ask(t.Context(), client, nil); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	close(connections)
	seen := map[string]bool{}
	for c := range connections {
		seen[c] = true
	}
	if len(seen) != 1 {
		t.Errorf("%d connections to the API server, expected one", len(seen))
	}
}

// An API server ends the connection of an anonymous client with its response. The client gets all of it.
func TestFrontSendsTheLastResponse(t *testing.T) {
	text := strings.Repeat("all of it ", 4000)
	b := newBehindFront(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, text)
	})
	client := b.client()
	for range 50 {
		if got, _, err := b.ask(t.Context(), client, nil); err != nil || got != text {
			t.Fatalf("%d bytes of %d, %v", len(got), len(text), err)
		}
	}
}

// S4-09: a client meets an API server that is gone, or stands still, as it would without the Front.
func TestFrontEndsWithItsAPIServer(t *testing.T) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	b := newBehindFront(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	client := b.client()
	failed := make(chan error, 1)
	go func() {
		_, _, err := b.ask(t.Context(), client, nil)
		failed <- err
	}()
	<-began
	b.server.CloseClientConnections()
	if err := <-failed; err == nil {
		t.Error("a request was answered by an API server that ended")
	}
	address := b.server.Listener.Addr().String()
	_ = b.server.Listener.Close()
	if _, _, err := b.ask(t.Context(), client, nil); err == nil {
		t.Error("a request was answered by an API server that is gone")
	}

	still, err := net.Listen("tcp", address) // the kernel accepts for it
	if err != nil {
		t.Fatal(err)
	}
	defer still.Close()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: b.authority.pool, ServerName: altsvc.DefaultAuthority}}
	if c, err := dialer.DialContext(short, "tcp", b.front.Addr()); err == nil {
		_ = c.Close()
		t.Error("shook hands for an API server that stands still")
	}
}
