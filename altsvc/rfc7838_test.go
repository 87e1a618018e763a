package altsvc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The tests of this file are named after the sections of RFC 7838. Section 4, the ALTSVC frame, is optional for clients; Go's HTTP/2
// implementation ignores it, and so does this package. Sections 7 and 9 have no requirements beyond those of section 2.

// Section 2: the change of the server is not visible to the client, and the authority is the origin's.
func TestRFC7838Section2OriginIsUnchanged(t *testing.T) {
	c, client := namedOrigin(t, "api.example")
	client.get("lb") // get checks the URL of the response
	client.get("a")
	want := strings.TrimPrefix(client.url, "https://")
	if r := c.servers["a"].requests(); len(r) != 1 || r[0].host != want {
		t.Errorf("a got %+v, want host %q", r, want)
	}
}

// Section 2.1: an alternative needs a certificate that is valid for the origin's host.
func TestRFC7838Section2_1HostAuthentication(t *testing.T) {
	_, client := namedOrigin(t, "alternative.example")
	client.get("lb")
	client.get("lb")
	if _, err := New("https://127.0.0.1", insecure(), Options{}); err == nil {
		t.Error("New accepted a configuration that verifies no certificates")
	}
}

// Section 2.1: without TLS there are no reasonable assurances, so an alternative for h2c or HTTP/1.1 is not used.
func TestRFC7838Section2_1OtherProtocols(t *testing.T) {
	c := newCluster(t, "a")
	address := c.servers["a"].address
	c.send(fmt.Sprintf(`h2c=%q, http%%2F1.1=%q, h3=%q`, address, address, address))
	client := c.client(Options{})
	client.get("lb")
	client.get("lb")
}

// Section 2.2: a connection stays in use after the end of the lifetime; a new one is not made.
func TestRFC7838Section2_2Freshness(t *testing.T) {
	c := newCluster(t, "a")
	c.send(fmt.Sprintf(`h2=%q; ma=10`, c.servers["a"].address))
	client := c.client(Options{})
	client.get("lb")
	client.pass(10 * time.Second)
	client.get("lb") // not fresh any more, and no connection exists; the response makes it fresh
	client.get("a")
	c.send()
	client.pass(time.Minute)
	client.get("a")
}

// Section 2.2: alternatives are authoritative for the origin: they can clear and update alternatives.
func TestRFC7838Section2_2AlternativesAreAuthoritative(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.advertise("a")
	client := c.client(Options{})
	client.get("lb")
	c.advertise("b")
	client.get("a")
	c.send("clear")
	client.get("b")
	client.get("lb")
}

// Section 2.2: after a change of the network only alternatives with persist=1 remain.
func TestRFC7838Section2_2NetworkChange(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.send(fmt.Sprintf(`h2=%q; persist=0, h2=%q; persist=1`, c.servers["a"].address, c.servers["b"].address))
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	client.services.NetworkChanged()
	client.get("b")
}

// Section 2.3: the server name in TLS is the origin's.
func TestRFC7838Section2_3ServerNameIndication(t *testing.T) {
	c, client := namedOrigin(t, "api.example")
	client.get("lb")
	client.get("a")
	if r := c.servers["a"].requests(); len(r) != 1 || r[0].sni != "api.example" {
		t.Errorf("a got %+v", r)
	}
}

// Section 2.4: a request with a proxy goes through the proxy, not to an alternative.
func TestRFC7838Section2_4Proxy(t *testing.T) {
	s, err := New("https://127.0.0.1:8080", nil, Options{Static: []string{"127.0.0.2"},
		Proxy: func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example:3128") }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	base := &recorder{}
	req, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1:8080/", nil)
	_, _ = s.RoundTripper(base).RoundTrip(req)
	if base.last != req {
		t.Errorf("the base got %+v", base.last)
	}
}

// Section 2.4: an alternative that does not negotiate the expected protocol has failed.
func TestRFC7838Section2_4ProtocolIsNotNegotiated(t *testing.T) {
	for name, protocols := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "b")
			c.servers["old"] = c.start("old", "127.0.0.3:0", clusterCA().issue(t, DefaultAuthority), protocols...)
			c.advertise("old", "b")
			client := c.client(Options{})
			client.get("lb")
			if got, err := client.do(http.MethodPost, strings.NewReader("content")); err != nil || got != "b" {
				t.Errorf("POST was answered by %q, %v", got, err)
			}
			if r := c.servers["old"].requests(); len(r) != 0 {
				t.Errorf("the old server got %+v", r)
			}
		})
	}
}

// Section 3: the field's values, from the section's examples and productions.
func TestRFC7838Section3Field(t *testing.T) {
	h2 := func(host string, port uint16) Alternative {
		return Alternative{Protocol: "h2", Host: host, Port: port, MaxAge: day}
	}
	for text, want := range map[string]Field{
		`clear`:                                {Clear: true},
		"\t clear ":                            {Clear: true},
		`h2=":8000"`:                           {Alternatives: []Alternative{h2("", 8000)}},
		`h2="new.example.org:80"`:              {Alternatives: []Alternative{h2("new.example.org", 80)}},
		`h2="alt.example.com:8000", h2=":443"`: {Alternatives: []Alternative{h2("alt.example.com", 8000), h2("", 443)}},
		`h2="[2001:DB8::1]:6443"`:              {Alternatives: []Alternative{h2("2001:db8::1", 6443)}},
		`h2="ALT.example.com:1"`:               {Alternatives: []Alternative{h2("alt.example.com", 1)}},
		`h2="a\lt.example.com:1"`:              {Alternatives: []Alternative{h2("alt.example.com", 1)}}, // a quoted pair
		`h2=":443"; v="46,43;x"; ma=60 ; x=1`:  {Alternatives: []Alternative{{Protocol: "h2", Port: 443, MaxAge: time.Minute}}},
		`h2=":443"; ma="60"`:                   {Alternatives: []Alternative{{Protocol: "h2", Port: 443, MaxAge: time.Minute}}},
		`h2=":443"; ma=2592000; persist=1`:     {Alternatives: []Alternative{{Protocol: "h2", Port: 443, MaxAge: 30 * day, Persist: true}}},
		`clear, h2=":443"`:                     {Clear: true}, // an invalid reply: clear wins
		`h2=":443", clear`:                     {Clear: true},
		`, h2=":443" ,, `:                      {Alternatives: []Alternative{h2("", 443)}}, // RFC 7230, section 7
		`h2="xn--bcher-kva.example:1"`:         {Alternatives: []Alternative{h2("xn--bcher-kva.example", 1)}},
		`clear="h:1"`:                          {Alternatives: []Alternative{{Protocol: "clear", Host: "h", Port: 1, MaxAge: day}}},
	} {
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	got, err := Parse(`h2="a:1"`, `h2="b:1"; persist=1`)
	if want := "[h2=\"a:1\" h2=\"b:1\"; persist=1]"; err != nil || fmt.Sprint(got.Alternatives) != want {
		t.Errorf("two fields: %v, %v; want %s", got.Alternatives, err, want)
	}
}

// Section 3: the examples of protocol names, and that there is one way to write each.
func TestRFC7838Section3ProtocolNames(t *testing.T) {
	for id, name := range map[string]string{"h2": "h2", "w%3Dx%3Ay#z": "w=x:y#z", "x%25y": "x%y"} {
		if got, ok := decodeProtocol(id); !ok || got != name {
			t.Errorf("%s is decoded as %q, %v; want %q", id, got, ok, name)
		}
		if got := encodeProtocol(name); got != id {
			t.Errorf("%s is encoded as %q, want %q", name, got, id)
		}
	}
	for _, id := range []string{"%68%32", "w%3dx", "%", "%2", "%ZZ"} {
		if got, ok := decodeProtocol(id); ok {
			t.Errorf("%s is decoded as %q, want none", id, got)
		}
	}
}

// Section 3: the field counts in a response with any status code.
func TestRFC7838Section3AnyStatus(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError} {
		c := newCluster(t, "a")
		c.origin.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); fmt.Fprint(w, "lb") })
		client := c.client(Options{})
		client.get("lb")
		client.get("a")
	}
}

// Section 3: an alternative without a host is on the origin's host. The origin is tried in the server's order of preference.
func TestRFC7838Section3SameHost(t *testing.T) {
	table := &table{origin: "api.example:443", maxAge: time.Hour}
	table.mustLearn(t, noon, `h2="alt.example.com:8000", h2=":8443", h2="alt.example.com:8000"`)
	if got := order(table, at(noon)); !slices.Equal(got, []string{"alt.example.com:8000", "api.example:8443"}) {
		t.Errorf("order %v", got)
	}
}

// Section 3.1: the lifetime is 24 hours unless ma changes it, and counts from the generation of the response: its Age is subtracted.
func TestRFC7838Section3_1Lifetime(t *testing.T) {
	for _, test := range []struct {
		field string
		age   time.Duration
		want  time.Duration
	}{
		{`h2=":8000"`, 0, day},
		{`h2=":8000"; ma=60`, 30 * time.Second, 30 * time.Second},
		{`h2=":8000"; ma=60`, 90 * time.Second, 0},
		{`h2=":8000"; ma=-1`, 0, day}, // not a number of seconds: as if it were not there
	} {
		table := &table{origin: "api.example:443", maxAge: 1000 * day}
		if _, err := table.learn(noon, test.field, test.age); err != nil {
			t.Fatal(err)
		}
		before, after := order(table, at(noon.Add(test.want-1))), order(table, at(noon.Add(test.want)))
		if (len(before) == 1) != (test.want > 0) || after != nil {
			t.Errorf("%s, age %v: %v before %v, %v after it", test.field, test.age, before, test.want, after)
		}
	}
	if got := age(http.Header{"Age": {"30"}, "Cache-Control": {"max-age=600"}}); got != 30*time.Second {
		t.Errorf("age %v", got)
	}
}

// Section 3.1: a field replaces all alternatives of the origin.
func TestRFC7838Section3_1Replaces(t *testing.T) {
	table := newTable()
	table.mustLearn(t, noon, three)
	table.mustLearn(t, noon, `h2="10.0.0.9:6443"`)
	if got := order(table, at(noon)); !slices.Equal(got, []string{"10.0.0.9:6443"}) {
		t.Errorf("order %v", got)
	}
}

// Section 5: a request to an alternative names it in Alt-Used; a request to the origin has no such field.
func TestRFC7838Section5AltUsed(t *testing.T) {
	c := newCluster(t, "a")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	if r := c.origin.requests()[0]; r.altUsed != "" {
		t.Errorf("the origin got Alt-Used %q", r.altUsed)
	}
	if r := c.servers["a"].requests()[0]; r.altUsed != c.servers["a"].address {
		t.Errorf("a got Alt-Used %q", r.altUsed)
	}
}

// Section 6: an alternative that answers 421 is removed, the request is sent elsewhere whatever its method is, and the field of that
// response is ignored.
func TestRFC7838Section6MisdirectedRequest(t *testing.T) {
	c := newCluster(t, "a", "b")
	client := c.client(Options{})
	client.get("lb")
	client.get("a")
	c.send(fmt.Sprintf(`h2=%q`, c.servers["a"].address))
	c.servers["a"].respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	if got, err := client.do(http.MethodPost, strings.NewReader("content")); err != nil || got != "b" {
		t.Fatalf("POST was answered by %q, %v", got, err)
	}
	if r := c.servers["b"].requests(); r[0].body != "content" {
		t.Errorf("b got %+v", r)
	}
	client.get("lb") // b listed a alone, which does not count for now
}

// namedOrigin is a cluster whose origin has the name api.example. The certificate of its API server is valid for name.
func namedOrigin(t *testing.T, name string) (*cluster, *client) {
	c := newCluster(t)
	c.origin.stop()
	c.origin = c.start("lb", "127.0.0.1:0", clusterCA().issue(t, "api.example"), "h2")
	c.servers["a"] = c.start("a", "127.0.0.2:0", clusterCA().issue(t, name), "h2")
	c.advertise("a")
	_, port, _ := net.SplitHostPort(c.origin.address)
	c.origin.URL = "https://api.example:" + port
	config := &rest.Config{Host: c.origin.URL, TLSClientConfig: rest.TLSClientConfig{CAData: clusterCA().pem()}}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && host == "api.example" {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return c, c.clientOf(config, Options{OriginAuthority: true})
}
