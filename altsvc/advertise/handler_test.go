package advertise

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kmsharness/kmsharness/altsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func addresses(texts ...string) (all []netip.AddrPort) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

func everyone(*http.Request) (bool, error) { return true, nil }

// ask returns the field in the response to a request.
func ask(t *testing.T, o Options, change func(*http.Request)) string {
	t.Helper()
	h, err := Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), o)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "https://kubernetes.default/api", nil)
	r.ProtoMajor, r.RemoteAddr = 2, "10.0.1.1:40000"
	change(r)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusTeapot {
		t.Errorf("status %d", w.Code)
	}
	return w.Header().Get("Alt-Svc")
}

// S4-01: with the feature gate on, a client in a configured subnet that RBAC allows gets the ready addresses over HTTP/2 and TLS. Nobody
// else gets them, and no request fails for it.
func TestFieldIsLimited(t *testing.T) {
	on := Options{Enabled: true, Ready: func() []netip.AddrPort { return addresses("10.0.0.2:6443", "[fd00::2]:6443") },
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("fd00:1::/64")}, Allowed: everyone}
	with := func(change func(*Options)) Options { o := on; change(&o); return o }
	same := func(*http.Request) {}
	table := map[string]struct {
		o      Options
		change func(*http.Request)
		want   bool
	}{
		"all conditions":   {on, same, true},
		"IPv6":             {on, func(r *http.Request) { r.RemoteAddr = "[fd00:1::7]:40000" }, true},
		"IPv4 in IPv6":     {on, func(r *http.Request) { r.RemoteAddr = "[::ffff:10.0.1.7]:40000" }, true},
		"gate off":         {with(func(o *Options) { o.Enabled = false }), same, false},
		"other subnet":     {on, func(r *http.Request) { r.RemoteAddr = "10.0.2.1:40000" }, false},
		"unknown address":  {on, func(r *http.Request) { r.RemoteAddr = "@" }, false},
		"HTTP/1.1":         {on, func(r *http.Request) { r.ProtoMajor = 1 }, false},
		"no TLS":           {on, func(r *http.Request) { r.TLS = nil }, false},
		"not allowed":      {with(func(o *Options) { o.Allowed = func(*http.Request) (bool, error) { return false, nil } }), same, false},
		"RBAC is down":     {with(func(o *Options) { o.Allowed = func(*http.Request) (bool, error) { return false, errors.New("down") } }), same, false},
		"nothing is ready": {with(func(o *Options) { o.Ready = func() []netip.AddrPort { return nil } }), same, false},
	}
	for name, test := range table {
		t.Run(name, func(t *testing.T) {
			got := ask(t, test.o, test.change)
			if (got != "") != test.want {
				t.Fatalf("field %q", got)
			}
			if !test.want {
				return
			}
			field, err := altsvc.Parse(got)
			if err != nil || len(field.Alternatives) != 2 || field.Alternatives[0].MaxAge != 70*time.Second || field.Alternatives[0].Protocol != "h2" {
				t.Errorf("field %q, %v", got, err)
			}
		})
	}
	for subject, serve := range map[string]func(Options, func(*http.Request)) string{
		"advertises-to-all": func(o Options, _ func(*http.Request)) string { return format(o.Ready(), time.Minute) },
		"advertises-by-address-alone": func(o Options, change func(*http.Request)) string {
			o.Allowed = everyone
			return ask(t, o, change)
		},
	} {
		caught := false
		for _, test := range table {
			caught = caught || (serve(test.o, test.change) != "") != test.want
		}
		if !caught {
			t.Errorf("%s passes", subject)
		}
	}
}

func TestHandlerRefusesIncompleteOptions(t *testing.T) {
	complete := Options{Enabled: true, Ready: func() []netip.AddrPort { return nil }, Subnets: []netip.Prefix{netip.MustParsePrefix("::/0")}, Allowed: everyone}
	for want, change := range map[string]func(*Options){
		"Ready": func(o *Options) { o.Ready = nil }, "subnets": func(o *Options) { o.Subnets = nil }, "Allowed": func(o *Options) { o.Allowed = nil },
	} {
		o := complete
		change(&o)
		if _, err := Handler(nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Each client gets one order, and clients together use all API servers about equally. A removed address does not change the order of
// the others.
func TestOrderSpreadsClients(t *testing.T) {
	ready := addresses("10.0.0.2:6443", "10.0.0.3:6443", "10.0.0.4:6443")
	first := map[netip.AddrPort]int{}
	client := netip.MustParseAddr("10.0.1.0")
	const clients = 300
	for range clients {
		client = client.Next()
		order := inOrder(ready, client)
		first[order[0]]++
		if again := inOrder(ready, client); !reflect.DeepEqual(order, again) {
			t.Fatalf("orders %v and %v", order, again)
		}
		if rest := inOrder(ready[:2], client); !reflect.DeepEqual(rest, remove(order, ready[2])) {
			t.Fatalf("order %v, without one address %v", order, rest)
		}
	}
	for a, n := range first {
		if n < clients/6 || n > clients/2 {
			t.Errorf("%s is first for %d of %d clients", a, n, clients)
		}
	}
}

func remove(all []netip.AddrPort, one netip.AddrPort) (rest []netip.AddrPort) {
	for _, a := range all {
		if a != one {
			rest = append(rest, a)
		}
	}
	return rest
}

func TestEnabled(t *testing.T) {
	for text, want := range map[string]bool{"": false, FeatureGate + "=true": true, FeatureGate + "=false": false, " " + FeatureGate + "=true ,": true} {
		if got, err := Enabled(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"Other=true", FeatureGate, FeatureGate + "=maybe"} {
		if got, err := Enabled(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// S4-01: only ready endpoints, with the port named https.
func TestReadyAddresses(t *testing.T) {
	s := slice("s", 6443, "10.0.0.3", "10.0.0.2", "10.0.0.2")
	s.Endpoints = append(s.Endpoints,
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.4"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.5"}},
		discoveryv1.Endpoint{Addresses: []string{"cp-1.example"}})
	other := slice("other", 6443, "10.0.0.9")
	other.Ports[0].Name = ptr.To("metrics")
	got := readyAddresses([]*discoveryv1.EndpointSlice{s, other, slice("v6", 7443, "fd00::1")})
	if want := addresses("10.0.0.2:6443", "10.0.0.3:6443", "10.0.0.5:6443", "[fd00::1]:7443"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var e Endpoints
	e.ready.Store(&got)
	if at, want := e.At(6444), addresses("10.0.0.2:6444", "10.0.0.3:6444", "10.0.0.5:6444", "[fd00::1]:6444"); !reflect.DeepEqual(at, want) || e.Ready()[0].Port() != 6443 {
		t.Errorf("%v, want %v", at, want)
	}
}

func slice(name string, port int32, ready ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(port)}},
	}
	for _, address := range ready {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
	}
	return s
}

// S4-01: RBAC is asked once a minute for each user, by the non-resource URL. A user without a name is not allowed.
func TestAccess(t *testing.T) {
	reviews, down := 0, false
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reviews++
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || down {
			http.Error(w, "down", http.StatusBadRequest)
			return
		}
		attributes := review.Spec.NonResourceAttributes
		review.Status.Allowed = attributes.Path == "/alternative-services" && attributes.Verb == "get" &&
			(review.Spec.User == "system:node:cp-1" || reflect.DeepEqual(review.Spec.Groups, []string{"system:masters"}))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	access := NewAccess(client.AuthorizationV1().SubjectAccessReviews(), nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	access.clock = now
	expect := func(r *http.Request, want, wantErr bool, wantReviews int) {
		t.Helper()
		if got, err := access.Allowed(r); got != want || (err != nil) != wantErr || reviews != wantReviews {
			t.Errorf("allowed %v, %v, %d reviews; want %v, error %v, %d reviews", got, err, reviews, want, wantErr, wantReviews)
		}
	}
	expect(certified("system:node:cp-1"), true, false, 1)
	expect(certified("system:node:cp-1"), true, false, 1)
	expect(certified("guest", "guests"), false, false, 2)
	expect(certified("guest", "guests"), false, false, 2)
	expect(certified("guest", "system:masters"), true, false, 3)
	expect(httptest.NewRequest(http.MethodGet, "https://x/", nil), false, false, 3)
	down = true
	now.SetTime(now.Now().Add(time.Minute))
	expect(certified("system:node:cp-1"), false, true, 4)
	expect(certified("system:node:cp-1"), false, false, 4)
	down = false
	now.SetTime(now.Now().Add(accessRetry))
	expect(certified("system:node:cp-1"), true, false, 5)
}

// certified is a request with a verified client certificate.
func certified(name string, groups ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://x/", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name, Organization: groups}}}}}
	return r
}

// S4-01, S4-08: server and client together. Three API servers are ready, and follow the EndpointSlices. A client moves from the load
// balancer to an API server, and to another one when its own becomes unready, before that ends.
func TestClientFollowsReadiness(t *testing.T) {
	store := &sliceStore{changed: make(chan *discoveryv1.EndpointSlice, 10)}
	client := clientOf(t, store)
	endpoints, err := NewEndpoints(client)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Enabled: true, Ready: endpoints.Ready, Subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Allowed: everyone}
	balancer := serve(t, "127.0.0.1:0", "lb", o)
	ready := map[string]*discoveryv1.EndpointSlice{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { endpoints.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for _, ip := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		s := serve(t, ip+":0", ip, o)
		address := netip.MustParseAddrPort(s.Listener.Addr().String())
		ready[ip] = slice("kubernetes-"+strings.ReplaceAll(ip, ".", "-"), int32(address.Port()), ip)
		store.changed <- ready[ip]
	}
	known := func(n int) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return len(endpoints.Ready()) == n, nil }); err != nil {
			t.Fatalf("%d API servers are ready, want %d", len(endpoints.Ready()), n)
		}
	}
	known(3)

	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: balancer.Certificate().Raw})
	config := &rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: root}}
	alternatives, err := altsvc.Wrap(config, altsvc.Options{Authority: "example.com"}) // a name in httptest's certificate
	if err != nil {
		t.Fatal(err)
	}
	defer alternatives.Close()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer utilnet.CloseIdleConnectionsFor(h.Transport)
	get := func() string {
		t.Helper()
		res, err := h.Get(config.Host + "/api")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := get(); got != "lb" {
		t.Errorf("the first answer is from %s", got)
	}
	first := get()
	if ready[first] == nil || get() != first {
		t.Fatalf("the second answer is from %s", first)
	}
	unready := ready[first].DeepCopy()
	unready.Endpoints[0].Conditions.Ready = ptr.To(false)
	store.changed <- unready
	known(2)
	get() // learns from the API server that is not ready any more
	if second := get(); second == first || ready[second] == nil {
		t.Errorf("%s is not ready, and the answer is from %s", first, second)
	}
}

// serve starts an HTTPS server that answers with its name.
func serve(t *testing.T, address, name string, o Options) *httptest.Server {
	t.Helper()
	h, err := Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }), o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	if s.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// clientOf is a client of an API server that is h.
func clientOf(t *testing.T, h http.Handler) *kubernetes.Clientset {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sliceStore is an API server with EndpointSlices. It has one watch at a time, which sends what has changed.
type sliceStore struct {
	changed chan *discoveryv1.EndpointSlice

	mu      sync.Mutex
	version int
}

func (s *sliceStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices" || query.Get("labelSelector") != "kubernetes.io/service-name=kubernetes" {
		http.NotFound(w, r)
		return
	}
	if query.Get("watch") == "" {
		_ = json.NewEncoder(w).Encode(&discoveryv1.EndpointSliceList{TypeMeta: metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
		return
	}
	send := func(event string, one *discoveryv1.EndpointSlice) {
		s.mu.Lock()
		s.version++
		one = one.DeepCopy()
		one.TypeMeta, one.ResourceVersion = metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"}, fmt.Sprint(s.version)
		s.mu.Unlock()
		text, _ := json.Marshal(one)
		fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", event, text)
		_ = http.NewResponseController(w).Flush()
	}
	if query.Get("sendInitialEvents") != "" {
		send("BOOKMARK", &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}
	for {
		select {
		case one := <-s.changed:
			send("MODIFIED", one) // a reflector stores an object that it does not know, too
		case <-r.Context().Done():
			return
		}
	}
}
