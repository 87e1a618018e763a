package altsvc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
)

func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// What cannot be safe or cannot work is an error.
func TestWrapRefuses(t *testing.T) {
	ca := rest.TLSClientConfig{CAData: clusterCA().pem()}
	for name, config := range map[string]*rest.Config{
		"verifies no certificates": {Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		"transport of its own":     {Host: "https://127.0.0.1:6443", Transport: http.DefaultTransport},
		"https URL":                {Host: "http://127.0.0.1:8080"},
		"read the host":            {Host: "https://[::1", TLSClientConfig: ca},
		"unable to load root":      {Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("none")}},
	} {
		s, err := Wrap(config, Options{})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
		if s != nil || config.WrapTransport != nil {
			t.Errorf("%s: the configuration was changed", name)
		}
	}
	if _, err := Wrap(&rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: ca}, Options{Static: []string{"http://x"}}); err == nil {
		t.Error("a static list with http was accepted")
	}
}

// Clients of a wrapped configuration share client-go's transport to the origin with clients of a plain one.
func TestWrapKeepsTransportCache(t *testing.T) {
	c := newCluster(t)
	plain, err := rest.TransportFor(c.config())
	if err != nil {
		t.Fatal(err)
	}
	client := c.client(Options{})
	if got := innermost(client.Transport); got != innermost(plain) {
		t.Errorf("transport %p, the plain client has %p", got, innermost(plain))
	}
}

func innermost(rt http.RoundTripper) http.RoundTripper {
	for {
		wrapper, ok := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return rt
		}
		rt = wrapper.WrappedRoundTripper()
	}
}

// A wrapper that the configuration already has sees each request once, whether it goes to the origin or to alternatives.
func TestWrapIsInnermost(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.servers["a"].stop()
	config := c.config()
	config.BearerToken = "secret"
	seen := 0
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(req *http.Request) (*http.Response, error) { seen++; return rt.RoundTrip(req) })
	})
	client := c.clientOf(config, Options{})
	client.get("lb")
	authorization := ""
	c.servers["b"].respond(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		fmt.Fprint(w, "b")
	})
	client.get("b")
	if seen != 2 || authorization != "Bearer secret" {
		t.Errorf("the wrapper saw %d requests, b got authorization %q", seen, authorization)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// exec, attach and port-forward upgrade their connections, in round trippers that Wrap leaves alone.
func TestWrapLeavesUpgradesAlone(t *testing.T) {
	c := newCluster(t, "a")
	config := c.config()
	s, err := Wrap(config, Options{Static: []string{c.servers["a"].address}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	overSPDY, _, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	overWebSocket, _, err := websocket.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range []http.RoundTripper{overSPDY, overWebSocket} {
		for rt != nil {
			if _, ok := rt.(*roundTripper); ok {
				t.Error("an upgrading round tripper is wrapped")
			}
			wrapper, ok := rt.(interface{ WrappedRoundTripper() http.RoundTripper })
			if !ok {
				break
			}
			rt = wrapper.WrappedRoundTripper()
		}
	}
}

// S4-08, S4-09, S4-11: an informer of client-go keeps receiving events when the load balancer and one API server are gone. It is not
// restarted.
func TestInformerSurvives(t *testing.T) {
	c := newCluster(t, "a", "b")
	for _, s := range append([]*apiServer{c.origin}, c.servers["a"], c.servers["b"]) {
		s.respond(s.configMaps)
	}
	client := c.client(Options{})
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: c.origin.URL, QPS: -1}, client.Client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := kube.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil { // learns
		t.Fatal(err)
	}
	c.origin.stop()
	factory := informers.NewSharedInformerFactory(kube, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	receive := func(server string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			_, found, err := informer.GetStore().GetByKey("default/" + server)
			return found, err
		})
		if err != nil {
			t.Fatalf("the informer has no object of %s: %v", server, err)
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not start")
	}
	receive("a")
	c.servers["a"].stop()
	receive("b")
}

// configMaps is an API server that lists no ConfigMap, and whose watch sends one with the server's name.
func (s *apiServer) configMaps(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if r.URL.Query().Get("watch") == "" {
		_ = json.NewEncoder(w).Encode(&corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: meta})
		return
	}
	event := func(kind string, o metav1.ObjectMeta) {
		object, _ := json.Marshal(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: o})
		fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
	event("ADDED", metav1.ObjectMeta{Name: s.name, Namespace: "default", ResourceVersion: "2"})
	if r.URL.Query().Get("sendInitialEvents") != "" {
		event("BOOKMARK", metav1.ObjectMeta{ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}})
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
