package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

const token = "secret"

// serving is a control API for a folder, and a client of it.
func serving(t *testing.T, dir string) *Client {
	t.Helper()
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	link, err := netfault.NewLink("api", upstream.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	c := &control{folder: folder(dir), token: token, link: link}
	s := httptest.NewServer(c.handler())
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return &Client{Token: token, Connect: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
}

func folderWith(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFollowCopiesWhatIsAppended(t *testing.T) {
	dir := folderWith(t, "plugins/a.jsonl", "reporter/b.log", "reporter/credential.pem")
	c := serving(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := map[string]string{}
	appended := false
	err := c.Follow(ctx, Sizes{"reporter/b.log": 3}, func(name string, at int64, content []byte) error {
		if name == "reporter/b.log" && got[name] == "" && at != 3 {
			t.Errorf("%s begins at %d, expected behind the 3 bytes that are there", name, at)
		}
		got[name] += string(content)
		if len(got) == 2 && !appended {
			appended = true
			f, err := os.OpenFile(filepath.Join(dir, "plugins/a.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("more\n")
			return err
		}
		if strings.HasSuffix(got["plugins/a.jsonl"], "more\n") {
			cancel()
		}
		return nil
	})
	if err == nil || got["plugins/a.jsonl"] != "plugins/a.jsonl\nmore\n" || got["reporter/b.log"] != "orter/b.log\n" || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	sizes, err := c.Sizes(t.Context())
	if err != nil || sizes["plugins/a.jsonl"] != 21 || len(sizes) != 2 {
		t.Errorf("%v, %v", sizes, err)
	}
}

func TestPutStaysInTheFolder(t *testing.T) {
	dir := folderWith(t, "reporter/x.log")
	c := serving(t, dir)
	if err := c.Put(t.Context(), "reporter/kubeconfig", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "reporter/kubeconfig")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{"../x", "/etc/x", ""} {
		if err := c.Put(t.Context(), bad, []byte("text"), 0o600); err == nil || !strings.Contains(err.Error(), "expected FOLDER/FILE") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDialReachesASocketOfThePod(t *testing.T) {
	dir := folderWith(t, "plugins/x.log")
	l, err := net.Listen("unix", filepath.Join(dir, "plugins/p.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	c := serving(t, dir)
	conn, err := c.Dial(t.Context(), "plugins/p.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "ping"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*dialled).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "ping" {
		t.Errorf("%q, %v", answer, err)
	}
	if _, err := c.Dial(t.Context(), "plugins/none.sock"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("no socket: %v", err)
	}
}

// The programs under test share the loopback address, and do not have the token.
func TestWithoutTheTokenNothingIsDone(t *testing.T) {
	dir := folderWith(t, "plugins/x.log")
	c := serving(t, dir)
	c.Token = "guess"
	if err := c.Put(t.Context(), "plugins/x.log", []byte("forged"), 0o600); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
	if err := c.SetLink(t.Context(), netfault.Fault{Mode: netfault.Reset}); err == nil {
		t.Error("a link can be broken without the token")
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{key: key, cert: &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a authority) sign(t *testing.T, c *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(2)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a authority) client(t *testing.T, until time.Time) tls.Certificate {
	return a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "system:kms-health-reporter:cp-1", Organization: []string{"reporters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func TestAPIProxyPassesTheIdentityOn(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	var seen http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"5"}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("sa-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openLineLog(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	proxy := newAPIProxy(API{URL: at, CA: trusted, TokenFile: filepath.Join(dir, "token")}, a.pool(), log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serverCert := a.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveAPI(ctx, l, serverCert, proxy) }()
	defer func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	ask := func(cert ...tls.Certificate) int {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: cert}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://"+l.Addr().String()+"/apis/operator.openshift.io/v1/kubeapiservers/cluster/status", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Impersonate-User", "admin")
		r.Header.Set("Impersonate-Extra-Scopes", "all")
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return errorOrCode(t, response)
	}
	if code := ask(a.client(t, time.Now().Add(time.Minute))); code != 200 {
		t.Errorf("code %d", code)
	}
	if seen.Get("Impersonate-User") != "system:kms-health-reporter:cp-1" || seen.Get("Impersonate-Group") != "reporters" ||
		seen.Get("Authorization") != "Bearer sa-token" || seen.Get("Impersonate-Extra-Scopes") != "" {
		t.Errorf("headers %v", seen)
	}
	text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || bytes.Count(text, []byte(`"username":"system:kms-health-reporter:cp-1"`)) != 2 || !bytes.Contains(text, []byte(`"resourceVersion":"5"`)) {
		t.Errorf("log %s, %v", text, err)
	}
	seen = nil
	for name, cert := range map[string][]tls.Certificate{
		"expired": {a.client(t, time.Now().Add(-time.Minute))}, "signed by a stranger": {stranger.client(t, time.Now().Add(time.Minute))}, "none": nil,
	} {
		if code := ask(cert...); code != http.StatusUnauthorized || seen != nil {
			t.Errorf("certificate %s: code %d, and the API server saw %v", name, code, seen)
		}
	}
}

func errorOrCode(t *testing.T, r *http.Response) int {
	t.Helper()
	if err := r.Body.Close(); err != nil {
		t.Error(err)
	}
	return r.StatusCode
}
