package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
)

// probed is a controller whose API server answers every read with what handle says, and the number of connections to it.
func probed(t *testing.T, handle http.HandlerFunc) (*Controller, *atomic.Int64) {
	conns := &atomic.Int64{}
	server := httptest.NewUnstartedServer(handle)
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	operator, err := core.OperatorByName("kubeapiserver")
	must(t, err)
	c, err := New(Config{REST: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, Operator: operator,
		Interval: interval, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	must(t, err)
	t.Cleanup(c.dialer.CloseAll)
	return c, conns
}

func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
}

// All clients have one connection: what a probe finds out of another's says nothing of an API server that has lost its etcd. At the beginning each
// dials, because there is none.
func TestOneConnection(t *testing.T) {
	const nodes, operators = "/api/v1/nodes", "/apis/config.openshift.io/v1/clusteroperators"
	var mu sync.Mutex
	from, times, done := map[string]string{}, map[string]int{}, make(chan struct{})
	c, _ := probed(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from[r.URL.Path] = r.RemoteAddr
		if times[r.URL.Path]++; times[nodes] >= 4 && times[operators] >= 4 && done != nil {
			close(done)
			done = nil
		}
		refuse(w, http.StatusNotFound)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	waited := done
	running.Go(func() { _ = c.Run(ctx) })
	<-waited
	cancel()
	running.Wait()
	mu.Lock() // the server may still answer what was given up
	defer mu.Unlock()
	if from[nodes] != from[operators] {
		t.Errorf("nodes are read from %s, and ClusterOperators from %s", from[nodes], from[operators])
	}
}

// An aggregator does not stay with an API server that reads nothing from etcd, however well its connection is.
func TestLeavesAServerWithoutEtcd(t *testing.T) {
	first := make(chan string, 1)
	left := make(chan struct{})
	var once sync.Once
	c, _ := probed(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case first <- r.RemoteAddr:
		default:
		}
		stuck := <-first
		first <- stuck
		if stuck == r.RemoteAddr {
			<-r.Context().Done() // as one whose etcd is cut off
			return
		}
		once.Do(func() { close(left) })
		refuse(w, http.StatusNotFound)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*reconcile.ProbeTimeout)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { c.checkLiveness(ctx) })
	select {
	case <-left:
	case <-ctx.Done():
		t.Errorf("no other connection within %v", 4*reconcile.ProbeTimeout)
	}
	cancel()
	running.Wait()
}

// A refusal is an answer, also one that client-go keeps to itself because it has Retry-After; each takes one connection.
func TestRefusalsAreAnswers(t *testing.T) {
	for _, c := range []struct {
		code       int
		retryAfter string
		alive      bool
	}{{403, "", true}, {404, "", true}, {429, "", true}, {429, "1", true}, {500, "", false}, {503, "", false}, {504, "", false}} {
		t.Run(http.StatusText(c.code)+c.retryAfter, func(t *testing.T) {
			controller, conns := probed(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				refuse(w, c.code)
			})
			if alive, err := controller.alive(t.Context()); alive != c.alive {
				t.Errorf("status %d: alive is %v (%v), expected %v", c.code, alive, err, c.alive)
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("%d connections, expected 1", n)
			}
		})
	}
}

// A write and a read of a lease need etcd; other reads may come from a cache.
func TestFromEtcd(t *testing.T) {
	for request, want := range map[[2]string]bool{
		{http.MethodPatch, "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status"}: true,
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"}:             true,
		{http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"}:             true,
		{http.MethodGet, "/api/v1/nodes"}:                                                  false,
	} {
		if got := fromEtcd(&http.Request{Method: request[0], URL: &url.URL{Path: request[1]}}); got != want {
			t.Errorf("%s %s: from etcd is %v, expected %v", request[0], request[1], got, want)
		}
	}
}
