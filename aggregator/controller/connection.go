package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Connection loads a kubeconfig (the in-cluster one when path is empty) for an aggregator: without a client-side
// rate limit, whose waiting would eat into the latency, and with a short dial time-out.
func Connection(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return tune(config), nil
}

func tune(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "kms-health-aggregator"
	return config
}

// Failover is the options of an aggregator that uses several API servers. It is connected to one all the time, so that a dead
// connection is found as one to the load balancer is.
func Failover(h host.Host, static []string) altsvc.Options {
	return altsvc.Options{
		Static: static, LocalAddresses: h.AddressesFunc, DialTimeout: reconcile.AlternativeTimeout, Block: reconcile.AlternativeBlock,
		PingAfter: pingAfter, PingTimeout: pingTimeout,
	}
}

// dial connects from a host in little time.
func dial(h host.Host) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dialling, cancel := context.WithTimeout(ctx, reconcile.DialTimeout)
		defer cancel()
		conn, err := h.Dial(dialling, network, address)
		if err != nil {
			return nil, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(reconcile.FirstByteTimeout)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return &answering{Conn: conn}, nil
	}
}

// answering is a connection whose first byte must come soon: a load balancer may accept a connection that it leads
// nowhere, and client-go would wait ten seconds for the TLS handshake. Once it has answered, HTTP/2 pings take over.
type answering struct {
	net.Conn
	once sync.Once
}

func (c *answering) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.once.Do(func() { err = errors.Join(err, c.SetReadDeadline(time.Time{})) })
	}
	return n, err
}

// DetectDeadConnections makes client-go notice a connection that swallows packets (a load balancer that went away
// without a word) within four seconds instead of 45: it sets the HTTP/2 ping interval and time-out, which client-go
// takes from the environment alone, in whole seconds. A time-out of one second would also end good connections while
// the machine is overloaded. What the administrator has set stays. Call it once, before the first connection.
func DetectDeadConnections() error {
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "1", "HTTP2_PING_TIMEOUT_SECONDS": "3"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, seconds); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
