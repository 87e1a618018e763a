package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// pulsed is a controller whose API server answers every read with what handle says, and the number of connections to it.
func pulsed(t *testing.T, handle http.HandlerFunc) (*Controller, *atomic.Int64) {
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

// An aggregator does not stay with an API server that reads nothing from etcd, however well its connection is.
func TestPulseLeavesAServerWithoutEtcd(t *testing.T) {
	first := make(chan string, 1)
	left := make(chan struct{})
	var once sync.Once
	c, _ := pulsed(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case first <- r.RemoteAddr:
		default:
		}
		if stuck := <-first; stuck == r.RemoteAddr {
			first <- stuck
			<-r.Context().Done() // as one whose etcd is cut off
			return
		} else {
			first <- stuck
		}
		once.Do(func() { close(left) })
		refuse(w, http.StatusNotFound)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*pulseTimeout)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { c.pulse(ctx) })
	select {
	case <-left:
	case <-ctx.Done():
		t.Errorf("no other connection within %v", 4*pulseTimeout)
	}
	cancel()
	running.Wait()
}

// A refusal is an answer: whoever is not allowed to read still has an API server.
func TestAnswers(t *testing.T) {
	for code, answered := range map[int]bool{403: true, 404: true, 429: true, 500: false, 503: false, 504: false} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			c, conns := pulsed(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, code) })
			if err := c.answers(t.Context()); (err == nil) != answered {
				t.Errorf("status %d: %v, expected an answer: %v", code, err, answered)
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("%d connections, expected 1", n)
			}
		})
	}
}

// The shortest period and the time-out stay below what a failed read of a decision takes: the pulse is there to be sooner.
func TestPulsePeriod(t *testing.T) {
	if pulseMin+pulseTimeout >= requestTimeout || pulseTimeout < 2*time.Second {
		t.Errorf("period %v and time-out %v, expected their sum below %v and time for an election", pulseMin, pulseTimeout, requestTimeout)
	}
	for interval, want := range map[time.Duration]time.Duration{time.Second: time.Second, 12 * time.Second: 2 * time.Second, 30 * time.Second: 5 * time.Second, time.Hour: 5 * time.Second} {
		if got := pulsePeriod(interval); got != want {
			t.Errorf("interval %v: every %v, expected %v", interval, got, want)
		}
	}
}

// An API server that has too many requests and wants to be asked again later has answered: client-go keeps that to itself for as long as
// the deadline lasts, and whoever dialled anew then would add a list and a watch for every mirror.
func TestWhoHasTooManyRequestsHasAnswered(t *testing.T) {
	c, conns := pulsed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests)
	})
	if err := c.answers(t.Context()); err != nil {
		t.Errorf("429 with Retry-After: %v, expected that it is an answer", err)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, expected 1", n)
	}
}

// Whoever gets nothing but errors backs off: each redial costs the API server a list and a watch for every mirror.
func TestPulseBacksOff(t *testing.T) {
	var asked atomic.Int64
	c, _ := pulsed(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		refuse(w, http.StatusInternalServerError)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 1400*time.Millisecond)
	defer cancel()
	c.pulse(ctx)
	// at 0, 100, 300, 700 and 1100 ms
	if n := asked.Load(); n < 2 || n > 6 {
		t.Errorf("asked %d times in 1.4s, expected 5", n)
	}
}
