package altsvc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// clusterCA is the authority of all tests, and otherCA one that no client trusts.
var clusterCA, otherCA = sync.OnceValue(newAuthority), sync.OnceValue(newAuthority)

func newAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &authority{certificate, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue makes a serving certificate for DNS names and IP addresses.
func (a *authority) issue(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// request is what a server received.
type request struct {
	server, method, host, sni, altUsed, body string
	protocol                                 int
}

// apiServer is an HTTPS server on an address of its own.
type apiServer struct {
	*httptest.Server
	cluster *cluster
	name    string
	address string
	// handle answers after the request is recorded. The default is the server's name.
	handle http.HandlerFunc
	// push makes a stream send another line.
	push chan struct{}

	mu  sync.Mutex
	got []request
}

// cluster is a load balancer ("lb", the origin) and API servers ("a", "b", …) with one field for all.
type cluster struct {
	t       testing.TB
	origin  *apiServer
	servers map[string]*apiServer

	mu    sync.Mutex
	field []string
	all   []request
}

// newCluster starts the load balancer and API servers with these names, which advertise all API servers. The certificate of the
// load balancer is valid for its own name only, those of API servers for DefaultAuthority only.
func newCluster(t testing.TB, names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: map[string]*apiServer{}}
	c.origin = c.start("lb", "127.0.0.1:0", clusterCA().issue(t, "127.0.0.1"), "h2", "http/1.1")
	for i, name := range names {
		c.servers[name] = c.start(name, fmt.Sprintf("127.0.0.%d:0", i+2), clusterCA().issue(t, DefaultAuthority), "h2", "http/1.1")
	}
	c.advertise(names...)
	return c
}

func (c *cluster) start(name, address string, certificate tls.Certificate, protocols ...string) *apiServer {
	c.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	s := &apiServer{cluster: c, name: name, address: listener.Addr().String(), push: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	_ = s.Listener.Close()
	s.Listener = listener
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: protocols}
	s.EnableHTTP2 = len(protocols) > 0 && protocols[0] == "h2"
	s.StartTLS()
	c.t.Cleanup(s.stop)
	return s
}

// stop ends a server as a killed process ends: its port refuses connections, and existing ones end.
func (s *apiServer) stop() {
	_ = s.Listener.Close()
	s.CloseClientConnections()
	s.Close()
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := request{server: s.name, method: r.Method, host: r.Host, sni: r.TLS.ServerName, altUsed: r.Header.Get("Alt-Used"), body: string(body), protocol: r.ProtoMajor}
	s.cluster.mu.Lock()
	s.cluster.all = append(s.cluster.all, got)
	field := s.cluster.field
	s.cluster.mu.Unlock()
	s.mu.Lock()
	s.got = append(s.got, got)
	handle := s.handle
	s.mu.Unlock()
	if field != nil {
		w.Header()["Alt-Svc"] = field
	}
	if handle != nil {
		handle(w, r)
		return
	}
	fmt.Fprint(w, s.name)
}

func (s *apiServer) respond(handle http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = handle
}

func (s *apiServer) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.got...)
}

// advertise makes all servers list these API servers.
func (c *cluster) advertise(names ...string) {
	var members []string
	for _, name := range names {
		members = append(members, fmt.Sprintf(`h2=%q`, c.servers[name].address))
	}
	if members == nil {
		c.send()
		return
	}
	c.send(strings.Join(members, ", "))
}

// send makes all servers send these Alt-Svc fields.
func (c *cluster) send(field ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.field = field
}

// served returns which server each request went to.
func (c *cluster) served() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.all {
		names = append(names, r.server)
	}
	return names
}

func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: c.origin.URL, TLSClientConfig: rest.TLSClientConfig{CAData: clusterCA().pem()}}
}

// client is a wrapped client of the cluster.
type client struct {
	*http.Client
	services *Services
	clock    *clocktesting.FakePassiveClock
	url      string
	t        testing.TB
}

// client makes a client that is on no machine of an API server.
func (c *cluster) client(o Options) *client {
	c.t.Helper()
	return c.clientOf(c.config(), o)
}

func (c *cluster) clientOf(config *rest.Config, o Options) *client {
	c.t.Helper()
	fake := clocktesting.NewFakePassiveClock(time.Now())
	o.Clock = fake
	if o.LocalAddresses == nil {
		o.LocalAddresses = func() ([]netip.Addr, error) { return nil, nil }
	}
	services, err := Wrap(config, o)
	if err != nil {
		c.t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		services.Close()
		utilnet.CloseIdleConnectionsFor(h.Transport)
	})
	return &client{Client: h, services: services, clock: fake, url: c.origin.URL, t: c.t}
}

// do sends a request, and returns the body of the response.
func (c *client) do(method string, body io.Reader) (string, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+"/api", body)
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	if res.Request.URL.Host != strings.TrimPrefix(c.url, "https://") {
		c.t.Errorf("the response is of %s, the client asked %s", res.Request.URL, c.url)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errCutOff, err)
	}
	return string(text), nil
}

var errCutOff = errors.New("the response is not complete")

// get expects that a GET is answered by a server.
func (c *client) get(want string) {
	c.t.Helper()
	if got, err := c.do(http.MethodGet, nil); err != nil || got != want {
		c.t.Errorf("GET was answered by %q, %v; want %q", got, err, want)
	}
}

// pass moves the client's clock.
func (c *client) pass(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// stream answers with the server's name, again at each push, and keeps the response open, as a watch.
func (s *apiServer) stream(w http.ResponseWriter, r *http.Request) {
	for {
		fmt.Fprintln(w, s.name)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.push:
		case <-r.Context().Done():
			return
		}
	}
}

// network is a dialer whose connections to an address can be muted: no byte passes and nothing is closed, as on a path with a
// broken router.
type network struct {
	mu    sync.Mutex
	muted map[string]chan struct{} // closed when muted
}

func (n *network) mute(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.muted == nil {
		n.muted = map[string]chan struct{}{}
	}
	if n.muted[address] == nil {
		n.muted[address] = make(chan struct{})
	}
	close(n.muted[address])
}

func (n *network) state(address string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.muted == nil {
		n.muted = map[string]chan struct{}{}
	}
	if n.muted[address] == nil {
		n.muted[address] = make(chan struct{})
	}
	return n.muted[address]
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	muted := n.state(address)
	select {
	case <-muted:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	return &mutable{Conn: conn, muted: muted, closed: make(chan struct{})}, nil
}

// mutable is a connection that can be muted.
type mutable struct {
	net.Conn
	muted  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (m *mutable) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	select {
	case <-m.muted: // what was read is lost
		<-m.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (m *mutable) Write(p []byte) (int, error) {
	select {
	case <-m.muted: // the kernel's buffer takes it
		return len(p), nil
	default:
		return m.Conn.Write(p)
	}
}

func (m *mutable) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Conn.Close()
}
