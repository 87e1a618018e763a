package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	//lint:ignore SA1019 client-go's port-forward has these types in its own signatures
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/kmsharness/kmsharness/harness/agent"
)

// tunnel is a forwarded port of a pod: the control port of its agent. It goes through the API server and the kubelet, so nothing else of the
// pod has to be reachable. One that breaks is made again.
type tunnel struct {
	dialer httpstream.Dialer

	mu      sync.Mutex
	address string        // of this machine; empty: it does not stand
	changed chan struct{} // closed when address changes
	why     error         // it does not stand
}

// newTunnel is one that run makes.
func newTunnel(config *rest.Config, client kubernetes.Interface, namespace, pod string) (*tunnel, error) {
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer, err := dialerFor(config, at)
	if err != nil {
		return nil, fmt.Errorf("forward a port of pod %s: %w", pod, err)
	}
	return &tunnel{dialer: dialer, changed: make(chan struct{})}, nil
}

// dialerFor uses WebSockets where the API server can, as kubectl does: proxies in front of it may not know SPDY.
func dialerFor(config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	websockets, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(websockets, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// run keeps the tunnel until ctx ends.
func (t *tunnel) run(ctx context.Context) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		t.set("", t.forward(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// forward returns when the connection to the pod has ended.
func (t *tunnel) forward(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{})
	port, err := strconv.ParseUint(agent.ControlPort, 10, 16)
	if err != nil {
		return err
	}
	f, err := portforward.NewOnAddressesWithContext(ctx, t.dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	ports, err := f.GetPorts()
	if err == nil {
		t.set(fmt.Sprintf("127.0.0.1:%d", ports[0].Local), nil)
	} else {
		cancel()
	}
	if ended := <-ended; err == nil {
		err = ended
	}
	return err
}

func (t *tunnel) set(address string, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.address, t.why = address, why
	close(t.changed)
	t.changed = make(chan struct{})
}

// connect makes a connection to the agent, once the tunnel stands.
func (t *tunnel) connect(ctx context.Context) (net.Conn, error) {
	for {
		t.mu.Lock()
		address, changed, why := t.address, t.changed, t.why
		t.mu.Unlock()
		if address != "" {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err == nil || ctx.Err() != nil {
				return conn, err
			}
			why = err // it has just ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("forwarded port: %w (%v)", ctx.Err(), why)
		}
	}
}
