package altsvc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// S4-04: without the field, a wrapped client sends everything to the origin.
func TestNothingWithoutField(t *testing.T) {
	c := newCluster(t, "a")
	c.advertise()
	client := c.client(Options{})
	for range 3 {
		client.get("lb")
	}
	if got := client.services.Current(); got != "" {
		t.Errorf("alternative %q is in use", got)
	}
}

// S4-02, S4-04: the first response comes from the origin. All others come from one alternative, over HTTP/2, under the name
// kubernetes.default in TLS and in the request.
func TestMovesToAlternativeAndStays(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	for range 3 {
		client.get("a")
	}
	for _, r := range c.servers["a"].requests() {
		if r.host != "kubernetes.default" || r.sni != "kubernetes.default" || r.protocol != 2 {
			t.Errorf("request %+v", r)
		}
	}
	if got := client.services.Current(); got != c.servers["a"].address {
		t.Errorf("current is %q", got)
	}
}

// S4-02, S4-10: an alternative on the client's machine is preferred.
func TestPrefersOwnMachine(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{LocalAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("127.0.0.3")}, nil }})
	client.get("lb")
	client.get("b")
}

// S4-02, S4-09: when the alternative in use goes down, a GET is answered by the next one, without an error and without waiting for
// any lease. With all alternatives down the origin answers.
func TestFailover(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	c.servers["a"].stop()
	client.get("b")
	c.servers["b"].stop()
	client.get("c")
	c.servers["c"].stop()
	client.get("lb")
	client.get("lb")
}

// S4-11: a load balancer that is taken away is not missed.
func TestLoadBalancerRemoved(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	c.origin.stop()
	client.get("a")
	c.servers["a"].stop()
	client.get("b")
	client.pass(time.Hour) // nothing is fresh any more, but the connection is alive
	client.get("b")
}

// S4-07, S4-09: a load balancer that drops everything, without closing its port, is not missed either. Nobody waits for it.
func TestLoadBalancerBlackHole(t *testing.T) {
	c := newCluster(t, "a", "b")
	var net network
	config := c.config()
	config.Dial = net.dial
	client := c.clientOf(config, Options{})
	client.get("lb")
	client.get("a")
	net.mute(c.origin.address)
	client.get("a")
	c.servers["a"].stop()
	client.get("b")
}

// S4-06: whatever has the address of an API server 70 s after it was last advertised gets nothing. A client whose entries never expire is caught
// by that.
func TestNothingAfterExpiry(t *testing.T) {
	strayed := func(o Options) int {
		c := newCluster(t, "a")
		client := c.client(o)
		client.get("lb")
		client.get("a")
		gone := c.servers["a"]
		client.CloseIdleConnections() // before it finds out by an error, which would block the address
		gone.stop()
		c.advertise()
		client.pass(DefaultMaxAge)
		heir := c.start("heir", gone.address, clusterCA().issue(t, DefaultAuthority), "h2")
		if _, err := client.do(http.MethodGet, nil); err != nil {
			t.Error(err)
		}
		return len(heir.requests())
	}
	for name, client := range map[string]struct {
		Options
		wrong bool
	}{"by-default": {}, "never-expires": {Options{MaxAge: 1000 * time.Hour}, true}} {
		if n := strayed(client.Options); (n > 0) != client.wrong {
			t.Errorf("%s: %d requests went to an API server of more than %v ago", name, n, DefaultMaxAge)
		}
	}
}

// S4-07: a client that finds a server of no use goes on to the next one, although the connection is good. Without an alternative in use nothing
// happens.
func TestLeave(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{Block: time.Minute})
	useless := errors.New("etcd does not answer")
	client.services.Leave(t.Context(), useless)
	client.get("lb")
	client.get("a")
	client.services.Leave(t.Context(), useless)
	client.get("b")
	client.pass(time.Minute)
	client.get("b")
	client.services.Leave(t.Context(), useless)
	client.get("a")
}

// S4-03: a network error blocks an alternative for the time of the option.
func TestNetworkErrorBlocksForTime(t *testing.T) {
	c := newCluster(t, "a", "b")
	dead := c.servers["a"]
	dead.stop()
	client := c.client(Options{Block: time.Minute})
	client.get("lb")
	client.get("b")
	c.advertise("a")
	client.get("b") // learns that b is no alternative any more
	client.get("lb")
	revived := c.start("a", dead.address, clusterCA().issue(t, DefaultAuthority), "h2")
	client.get("lb") // the blockade has not ended
	client.pass(time.Minute)
	client.get("a")
	if n := len(revived.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// S4-03: an alternative whose certificate is of another authority, or for another name, is never tried again.
func TestCertificateErrorBlocksForever(t *testing.T) {
	c := newCluster(t)
	c.servers["foreign"] = c.start("foreign", "127.0.0.2:0", otherCA().issue(t, DefaultAuthority), "h2")
	c.servers["misnamed"] = c.start("misnamed", "127.0.0.3:0", clusterCA().issue(t, "other.example"), "h2")
	c.servers["good"] = c.start("good", "127.0.0.4:0", clusterCA().issue(t, DefaultAuthority), "h2")
	c.advertise("foreign", "misnamed", "good")
	client := c.client(Options{})
	client.get("lb")
	client.get("good")
	c.advertise("foreign", "misnamed")
	client.get("good")
	for _, name := range []string{"foreign", "misnamed"} { // the mistakes are corrected: too late
		old := c.servers[name]
		old.stop()
		c.start(name, old.address, clusterCA().issue(t, DefaultAuthority), "h2")
	}
	client.pass(24 * time.Hour)
	client.get("lb")
	client.get("lb")
}

// S4-04: alternatives in responses over HTTP/1.1 do not count.
func TestHTTP1IsIgnored(t *testing.T) {
	c := newCluster(t, "a")
	config := c.config()
	config.NextProtos = []string{"http/1.1"}
	client := c.clientOf(config, Options{})
	client.get("lb")
	client.get("lb")
	if r := c.origin.requests()[0]; r.protocol != 1 {
		t.Fatalf("the origin was asked over HTTP/%d", r.protocol)
	}
}

// S4-04: plain HTTP has no alternatives: as an origin it is refused, and a request over it passes unchanged.
func TestPlainHTTPIsIgnored(t *testing.T) {
	if s, err := New("http://127.0.0.1:8080", nil, Options{}); err == nil {
		s.Close()
		t.Error("New accepted an origin without TLS")
	}
	s, err := New("https://127.0.0.1:8080", nil, Options{Static: []string{"127.0.0.2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, url := range []string{"http://127.0.0.1:8080/", "https://127.0.0.1:8081/", "https://other:8080/"} {
		base := &recorder{}
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		_, _ = s.RoundTripper(base).RoundTrip(req)
		if base.last != req {
			t.Errorf("%s: the base got %+v", url, base.last)
		}
	}
}

// An upgrade has no equivalent in HTTP/2, and goes to the origin.
func TestUpgradeGoesToOrigin(t *testing.T) {
	s, err := New("https://127.0.0.1:8080", nil, Options{Static: []string{"127.0.0.2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	base := &recorder{}
	req, _ := http.NewRequest(http.MethodPost, "https://127.0.0.1:8080/exec", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "SPDY/3.1")
	_, _ = s.RoundTripper(base).RoundTrip(req)
	if base.last != req {
		t.Errorf("the base got %+v", base.last)
	}
}

type recorder struct{ last *http.Request }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.last = req
	return nil, errors.New("recorded")
}

// S4-05: a static list needs no field, and does not expire.
func TestStaticList(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.advertise()
	client := c.client(Options{Static: []string{c.servers["b"].address, "https://" + c.servers["a"].address}})
	client.get("b")
	client.pass(24 * time.Hour)
	client.get("b")
	c.servers["b"].stop()
	client.get("a")
	c.servers["a"].stop()
	client.get("lb")
}

// S4-05, S4-11: with a static list a client starts without the load balancer.
func TestStaticListStartsWithoutLoadBalancer(t *testing.T) {
	c := newCluster(t, "a")
	c.origin.stop()
	client := c.client(Options{Static: []string{c.servers["a"].address}})
	client.get("a")
}

// S4-05: with a static list a client starts without DNS. The name of the load balancer is looked up when no alternative is left, and not before.
func TestStaticListNeedsNoName(t *testing.T) {
	c := newCluster(t, "a")
	config := c.config()
	config.Host = "https://api-int.invalid:6443"
	lookup := errors.New("lookup api-int.invalid: no such host")
	config.Dial = func(ctx context.Context, kind, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "api-int.invalid") {
			return nil, lookup
		}
		return new(net.Dialer).DialContext(ctx, kind, address)
	}
	client := c.clientOf(config, Options{Static: []string{c.servers["a"].address}})
	client.url = config.Host
	client.get("a")
	c.servers["a"].stop()
	if _, err := client.do(http.MethodGet, nil); !errors.Is(err, lookup) {
		t.Errorf("without alternatives: %v, want %v", err, lookup)
	}
}

// S4-08: a new member with a new address takes over from removed ones; the client is not restarted. The request in progress ends
// where it began.
func TestMembersAreReplaced(t *testing.T) {
	c := newCluster(t, "a")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	watch := client.watch("a", c.servers["a"])
	c.servers["b"] = c.start("b", "127.0.0.9:0", clusterCA().issue(t, DefaultAuthority), "h2")
	c.advertise("b")
	client.get("a") // learns
	client.get("b")
	watch.alive()
	c.servers["a"].stop()
	watch.ended()
	client.get("b")
}

// A POST that reached an alternative is not sent again, because it may have taken effect. The next one goes elsewhere.
func TestPostIsNotReplayed(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	c.servers["a"].respond(func(http.ResponseWriter, *http.Request) {
		go c.servers["a"].CloseClientConnections()
		<-t.Context().Done()
	})
	for _, body := range []io.Reader{strings.NewReader("once"), nil, io.NopCloser(strings.NewReader("once"))} {
		before := len(c.served())
		c.servers["a"].respond(c.servers["a"].abort)
		if got, err := client.do(http.MethodPost, body); err == nil {
			t.Errorf("POST was answered by %q, want an error", got)
		}
		if got := c.served()[before:]; !slices.Equal(got, []string{"a"}) {
			t.Errorf("POST was sent to %v", got)
		}
		client.get("b")
		client.services.NetworkChanged() // unblocks a
		c.servers["a"].respond(nil)
		client.get("lb")
		client.get("a")
	}
}

// abort ends all connections of the server in the middle of a request.
func (s *apiServer) abort(_ http.ResponseWriter, r *http.Request) {
	s.CloseClientConnections()
	<-r.Context().Done()
}

// A POST that cannot have been sent, because no connection was established, goes to the next server with its whole body: also when
// the body can be read only once.
func TestPostMovesOnWhenNothingWasSent(t *testing.T) {
	for name, body := range map[string]func() io.Reader{
		"GetBody":   func() io.Reader { return strings.NewReader("content") },
		"read once": func() io.Reader { return io.NopCloser(strings.NewReader("content")) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			c.servers["a"].stop()
			client := c.client(Options{})
			client.get("lb")
			if got, err := client.do(http.MethodPost, body()); err != nil || got != "b" {
				t.Fatalf("POST was answered by %q, %v", got, err)
			}
			if r := c.servers["b"].requests(); len(r) != 1 || r[0].body != "content" {
				t.Errorf("b got %+v", r)
			}
			c.servers["b"].stop()
			client.services.NetworkChanged()
			c.advertise("a", "b")
			client.get("lb")
			if got, err := client.do(http.MethodPut, body()); err != nil || got != "lb" {
				t.Fatalf("PUT was answered by %q, %v", got, err)
			}
		})
	}
}

// The body of a request is closed, whichever attempt succeeds.
func TestRequestBodyIsClosed(t *testing.T) {
	c := newCluster(t, "a")
	client := c.client(Options{})
	client.get("lb")
	for range 2 {
		closed := make(chan struct{})
		body := &closing{Reader: strings.NewReader("content"), closed: closed}
		_, _ = client.do(http.MethodPost, body) // the second one may have reached the server before that ended
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatal("the body was not closed")
		}
		c.servers["a"].stop()
	}
}

type closing struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// An error of the request's own body does not block the alternative.
func TestBrokenBodyBlocksNothing(t *testing.T) {
	c := newCluster(t, "a")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	if _, err := client.do(http.MethodPost, io.MultiReader(strings.NewReader("x"), &broken{})); err == nil {
		t.Error("POST with a broken body succeeded")
	}
	client.get("a")
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// A request that its client cancels does not block the alternative, and is not sent elsewhere.
func TestCancelBlocksNothing(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	ctx, cancel := context.WithCancel(t.Context())
	c.servers["a"].respond(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, client.url, nil)
	if _, err := client.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	c.servers["a"].respond(nil)
	client.get("a")
	if n := len(c.servers["b"].requests()); n != 0 {
		t.Errorf("b got %d requests", n)
	}
}

// A stream that the server resets is no reason to leave it: its other requests go on.
func TestStreamResetBlocksNothing(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	c.servers["a"].respond(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := client.do(http.MethodGet, nil); err == nil {
		t.Error("GET succeeded")
	}
	c.servers["a"].respond(nil)
	client.get("a")
}

// S4-08, S4-09: a watch ends when its server goes down, and the next watch is served by another one.
func TestWatchMovesOver(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	watch := client.watch("a", c.servers["a"])
	c.servers["a"].stop()
	watch.ended()
	client.watch("b", c.servers["b"]).cancel()
}

// S4-09: a connection that has become a black hole is found by PING, although nobody closes it. The watch ends, and neither it nor
// any other request goes to that server again.
func TestBlackHoleIsFoundByPing(t *testing.T) {
	c := newCluster(t, "a", "b")
	var net network
	client := c.client(Options{Dial: net.dial, PingAfter: 100 * time.Millisecond, PingTimeout: time.Second})
	client.get("lb")
	watch := client.watch("a", c.servers["a"])
	net.mute(c.servers["a"].address)
	watch.ended()
	client.get("b")
	if got := client.services.Current(); got != c.servers["b"].address {
		t.Errorf("current is %q", got)
	}
}

// The same hole is not found by a client that sends no PING, whose watch stands for ever.
func TestPingIsWhatFindsIt(t *testing.T) {
	c := newCluster(t, "a", "b")
	var net network
	over := map[string]chan struct{}{}
	for subject, after := range map[string]time.Duration{"the client": 100 * time.Millisecond, "watch-without-ping": time.Hour} {
		client := c.client(Options{Dial: net.dial, PingAfter: after, PingTimeout: time.Second})
		client.get("lb")
		watch, ended := client.watch("a", c.servers["a"]), make(chan struct{})
		over[subject] = ended
		var waiting sync.WaitGroup
		waiting.Go(func() { watch.ended(); close(ended) })
		t.Cleanup(func() { watch.cancel(); waiting.Wait() })
	}
	net.mute(c.servers["a"].address)
	<-over["the client"]
	select {
	case <-over["watch-without-ping"]:
		t.Error("the watch of a client without PING has ended, too: something else finds the hole")
	default:
	}
}

// A GET that waits for an answer through a black hole is answered by another server once PING has found the hole.
func TestGetLeavesBlackHole(t *testing.T) {
	c := newCluster(t, "a", "b")
	var net network
	client := c.client(Options{Dial: net.dial, PingAfter: 100 * time.Millisecond, PingTimeout: time.Second})
	client.get("lb")
	client.get("a")
	net.mute(c.servers["a"].address)
	client.get("b")
}

// An alternative that does not answer while a connection is established is left after the dial timeout.
func TestDialTimeout(t *testing.T) {
	c := newCluster(t, "a", "b")
	var net network
	net.mute(c.servers["a"].address)
	client := c.client(Options{Dial: net.dial, DialTimeout: 100 * time.Millisecond})
	client.get("lb")
	client.get("b")
}

// Requests in parallel agree on one alternative, also while a server goes down. A response that the server had begun is cut off, which
// no client can repair; every other GET succeeds.
func TestParallelRequests(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	client := c.client(Options{})
	client.get("lb")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				if got, err := client.do(http.MethodGet, nil); (err != nil || got == "") && !errors.Is(err, errCutOff) {
					t.Errorf("GET: %q, %v", got, err)
				}
				if i == 0 && j == 5 {
					c.servers["a"].stop()
				}
			}
		})
	}
	group.Wait()
	client.get("b")
}

// Close ends a watch, its connection and its goroutines. The client goes on with the origin.
func TestClose(t *testing.T) {
	c := newCluster(t, "a")
	client := c.client(Options{})
	client.get("lb")
	watch := client.watch("a", c.servers["a"])
	client.services.Close()
	watch.ended()
	client.get("lb")
}

// watching is a response in progress.
type watching struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Reader
	server *apiServer
	cancel context.CancelFunc
}

// watch opens a watch that a server must serve.
func (c *client) watch(want string, s *apiServer) *watching {
	c.t.Helper()
	s.respond(s.stream)
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api?watch=true", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	w := &watching{t: c.t, res: res, lines: bufio.NewReader(res.Body), server: s, cancel: cancel}
	if line, err := w.lines.ReadString('\n'); err != nil || line != want+"\n" {
		c.t.Fatalf("the watch is served by %q, %v; want %q", line, err, want)
	}
	s.respond(nil)
	return w
}

// alive checks that the watch receives what its server sends.
func (w *watching) alive() {
	w.t.Helper()
	w.server.push <- struct{}{}
	if line, err := w.lines.ReadString('\n'); err != nil {
		w.t.Errorf("the watch got %q, %v", line, err)
	}
}

// ended waits for the end of the watch.
func (w *watching) ended() {
	w.t.Helper()
	if _, err := w.lines.ReadString('\n'); err == nil {
		w.t.Error("the watch goes on")
	}
	_ = w.res.Body.Close()
	w.cancel()
}
