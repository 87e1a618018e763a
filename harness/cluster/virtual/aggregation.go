package virtual

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// frontProxy is the name by which aggregated API servers know a kube-apiserver that passes requests on.
const frontProxy = "kmsharness-front-proxy"

// aggregation is what kube-apiservers show aggregated API servers. Its authority signs nothing else, because the owner of one of its
// certificates can act as any user.
type aggregation struct {
	authority controlplane.Authority
	shown     rest.TLSClientConfig // certificate and key
}

func newAggregation() (*aggregation, error) {
	authority, err := controlplane.NewAuthority()
	if err != nil {
		return nil, err
	}
	config, err := authority.RESTConfig(frontProxy, nil, "")
	if err != nil {
		return nil, err
	}
	return &aggregation{authority, config.TLSClientConfig}, nil
}

// Resources of the aggregation layer.
var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// proxy is kube-aggregator's part of one life of a kube-apiserver: what an APIService leads elsewhere it passes on.
type proxy struct {
	server *server

	mu     sync.Mutex
	routes map[route]http.RoundTripper
}

// route is how the API server behind a Service is known.
type route struct{ name, authority string }

// target is where an APIService leads.
type target struct {
	url       *url.URL // of the version
	transport http.RoundTripper
	available bool
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.routes {
		utilnet.CloseIdleConnectionsFor(t)
	}
}

// handler is apiserver.Options.Aggregate.
func (p *proxy) handler(q *apiserver.Request) http.Handler {
	path := strings.Split(q.Path, "/") // "", "apis", group, version, ...
	if len(path) < 4 || path[1] != "apis" {
		return nil
	}
	o := p.server.cluster.objects.Object(store.Key{Resource: apiServices, Name: path[3] + "." + path[2]})
	if o == nil {
		return nil
	}
	t, err := p.target(o)
	switch {
	case err != nil:
		return refusing(err.Error())
	case !t.available:
		return refusing("service unavailable")
	}
	u := q.User
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: t.url.Scheme, Host: t.url.Host})
			r.Out.Header.Del("Authorization")
		},
		Transport: transport.NewAuthProxyRoundTripper(u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra(), t.transport),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refusing("error trying to reach service: "+err.Error()).ServeHTTP(w, r)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// refusing answers as kube-aggregator does where it cannot pass a request on.
func refusing(why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusServiceUnavailable) })
}

// target reads where an APIService leads. The Service has an external name: there are no addresses of pods here.
func (p *proxy) target(o *unstructured.Unstructured) (target, error) {
	text := func(of *unstructured.Unstructured, path ...string) string {
		s, _, _ := unstructured.NestedString(of.Object, path...)
		return s
	}
	namespace, name := text(o, "spec", "service", "namespace"), text(o, "spec", "service", "name")
	service := p.server.cluster.objects.Object(store.Key{Resource: services, Namespace: namespace, Name: name})
	if service == nil || text(service, "spec", "externalName") == "" {
		return target{}, fmt.Errorf("service %s/%s: it is not there, or has no external name", namespace, name)
	}
	port, _, _ := unstructured.NestedInt64(o.Object, "spec", "service", "port")
	authority, err := base64.StdEncoding.DecodeString(text(o, "spec", "caBundle"))
	if err != nil {
		return target{}, fmt.Errorf("APIService %s: authority: %w", o.GetName(), err)
	}
	t := target{url: &url.URL{Scheme: "https", Host: net.JoinHostPort(text(service, "spec", "externalName"), strconv.FormatInt(port, 10)),
		Path: "/apis/" + text(o, "spec", "group") + "/" + text(o, "spec", "version")}}
	t.transport, err = p.transport(route{name + "." + namespace + ".svc", string(authority)})
	available, _ := condition(o)
	t.available = available["status"] == string(metav1.ConditionTrue)
	return t, err
}

// transport is the one of a route, made once.
func (p *proxy) transport(to route) (http.RoundTripper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.routes[to]; t != nil {
		return t, nil
	}
	c, shown := p.server.cluster, p.server.cluster.layer.shown
	config := &rest.Config{Dial: c.machine.network.Host(p.server.host).DialFunc,
		TLSClientConfig: rest.TLSClientConfig{CertData: shown.CertData, KeyData: shown.KeyData, CAData: []byte(to.authority), ServerName: to.name}}
	config.Wrap(c.machine.network.Wrap(p.server.host))
	t, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	p.routes[to] = t
	return t, nil
}

// How often kube-aggregator asks whether what is behind an APIService answers, and for how long.
const (
	lookForServices     = time.Second // for such as are new
	checkAvailable      = 30 * time.Second
	checkUnavailable    = 5 * time.Second
	availabilityTimeout = 5 * time.Second
)

// follow keeps the conditions of APIServices, by which all kube-apiservers go, until ctx ends.
func (p *proxy) follow(ctx context.Context) {
	ticker := time.NewTicker(lookForServices)
	defer ticker.Stop()
	next := map[string]time.Time{}
	for {
		for _, o := range p.server.cluster.objects.Objects(apiServices.Group) {
			if time.Now().Before(next[o.GetName()]) {
				continue
			}
			wait := checkAvailable
			if !p.check(ctx, o) {
				wait = checkUnavailable
			}
			next[o.GetName()] = time.Now().Add(wait)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// check asks whether what is behind an APIService answers, and sets its condition if that has changed. It reports whether it is available now.
func (p *proxy) check(ctx context.Context, o *unstructured.Unstructured) bool {
	limited, cancel := context.WithTimeout(ctx, availabilityTimeout)
	defer cancel()
	err := p.ask(limited, o)
	want := map[string]any{"type": "Available", "status": string(metav1.ConditionTrue), "reason": "Passed", "message": "all checks passed"}
	if err != nil {
		want["status"], want["reason"], want["message"] = string(metav1.ConditionFalse), "FailedDiscoveryCheck", err.Error()
	}
	was, at := condition(o)
	delete(was, "lastTransitionTime")
	if ctx.Err() != nil || reflect.DeepEqual(was, want) || p.server.storage(ctx) != nil {
		return err == nil
	}
	want["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if at < 0 {
		all = append(all, want)
	} else {
		all[at] = want
	}
	if unstructured.SetNestedSlice(o.Object, all, "status", "conditions") != nil || p.server.cluster.objects.SetStatus(apiServices, o, "kube-apiserver") != nil {
		return false // somebody else has changed it
	}
	return err == nil
}

func (p *proxy) ask(ctx context.Context, o *unstructured.Unstructured) error {
	t, err := p.target(o)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url.String(), nil)
	if err != nil {
		return err
	}
	transport.SetAuthProxyHeaders(r, "system:kube-aggregator", "", []string{user.SystemPrivilegedGroup}, nil)
	answer, err := t.transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("failing or missing response from %s: %w", t.url, err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("failing or missing response from %s: %w", t.url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("failing or missing response from %s: bad status from %s: %d", t.url, t.url, answer.StatusCode)
	}
	return nil
}

// condition returns the condition Available of an APIService and its index among the conditions, which is below 0 if there is none.
func condition(o *unstructured.Unstructured) (is map[string]any, at int) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for i, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == "Available" {
			return c, i
		}
	}
	return nil, -1
}
