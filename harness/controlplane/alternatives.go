package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
)

const (
	// alternativesPoll is how often API servers are asked whether they are ready, and alternativesTimeout how long one may take to say so.
	alternativesPoll    = 250 * time.Millisecond
	alternativesTimeout = 500 * time.Millisecond
)

// alternatives is which API servers are ready, at the addresses of their fronts. EndpointSlices cannot say so here: they do not have addresses of
// this machine alone.
type alternatives struct {
	cp   *ControlPlane
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	ready []netip.AddrPort
}

func newAlternatives(cp *ControlPlane) *alternatives {
	ctx, stop := context.WithCancel(context.Background())
	a := &alternatives{cp: cp, stop: stop, done: make(chan struct{})}
	go a.run(ctx)
	return a
}

func (a *alternatives) run(ctx context.Context) {
	defer close(a.done)
	tick := time.NewTicker(alternativesPoll)
	defer tick.Stop()
	for {
		ready := a.ask(ctx)
		a.mu.Lock()
		a.ready = ready
		a.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (a *alternatives) ask(ctx context.Context) []netip.AddrPort {
	ctx, cancel := context.WithTimeout(ctx, alternativesTimeout)
	defer cancel()
	servers := a.cp.Servers()
	answers := make([]netip.AddrPort, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			if s.Status().Running() && a.cp.probe.ask(ctx, s.URL+string(Ready)) == nil {
				answers[i], _ = netip.ParseAddrPort(s.FrontAddr)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(answers, func(at netip.AddrPort) bool { return !at.IsValid() })
}

// now is advertise.Options.Ready.
func (a *alternatives) now() []netip.AddrPort {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.ready)
}

func (a *alternatives) close() {
	a.stop()
	<-a.done
}

// inFrontOf makes the front of an API server.
func (a *alternatives) inFrontOf(s *APIServer) (*advertise.Front, error) {
	serving, err := tls.LoadX509KeyPair(s.serving.cert, s.serving.key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", s.name, err)
	}
	proxy, err := tls.LoadX509KeyPair(a.cp.aggregation.proxy.cert, a.cp.aggregation.proxy.key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of front proxies: %w", err)
	}
	admin, err := a.cp.AdminConfig(s.URL)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", s.name, err)
	}
	return advertise.NewFront(advertise.FrontOptions{
		Upstream: s.Addr, Serving: serving, Authority: a.cp.roots(), Proxy: proxy,
		Field: advertise.Options{
			Enabled: true, Ready: a.now, Subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Allowed: advertise.NewAccess(authorization.SubjectAccessReviews(), nil).Allowed,
		},
	})
}
