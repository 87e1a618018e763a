package virtual

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// alternatives is which API servers are ready, for clients that they tell of each other.
type alternatives struct {
	cluster *ControlPlane
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu    sync.Mutex
	ready []netip.AddrPort
}

// alternativesPoll is how often API servers are asked whether they are ready.
const alternativesPoll = 250 * time.Millisecond

// newAlternatives asks for the API servers that can be advertised in the background, until it is closed.
func newAlternatives(c *ControlPlane) *alternatives {
	ctx, cancel := context.WithCancel(context.Background())
	a := &alternatives{cluster: c, cancel: cancel}
	a.asking.Go(func() {
		ticker := time.NewTicker(alternativesPoll)
		defer ticker.Stop()
		for {
			a.ask(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return a
}

// ask notes which API servers are ready now. One that is not is advertised to nobody.
func (a *alternatives) ask(ctx context.Context) {
	var ready []netip.AddrPort
	for _, s := range a.cluster.all() {
		if s.Status().Phase != cluster.Running || s.ask(ctx, controlplane.Ready) != nil {
			continue
		}
		if at, err := netip.ParseAddrPort(s.info.Addr); err == nil {
			ready = append(ready, at)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = ready
}

// now is advertise.Options.Ready.
func (a *alternatives) now() []netip.AddrPort {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready
}

func (a *alternatives) close() {
	a.cancel()
	a.asking.Wait()
}

// advertising adds the Alt-Svc field to the answers of an API server, as one with the feature gate does.
func (c *ControlPlane) advertising(next http.Handler) http.Handler {
	if c.alternatives == nil {
		return next
	}
	user := func(r *http.Request) (string, []string) {
		u, err := c.identities.Authenticate(r)
		if err != nil {
			return "", nil
		}
		return u.GetName(), u.GetGroups()
	}
	h, err := advertise.Handler(c.changingField(next), advertise.Options{Enabled: true, Ready: c.alternatives.now, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Allowed: advertise.NewAccess(c.access.Reviews(), user).Allowed})
	if err != nil { // of options that are missing, and none is
		return next
	}
	return h
}

const altSvcHeader = "Alt-Svc"

// changingField is next behind what may change the field.
func (c *ControlPlane) changingField(next http.Handler) http.Handler {
	if c.altSvc == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if field := w.Header().Get(altSvcHeader); field != "" {
			w.Header().Set(altSvcHeader, c.altSvc(field))
		}
		next.ServeHTTP(w, r)
	})
}
