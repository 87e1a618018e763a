package local

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// client talks to one address under one identity, over connections of its own.
type client struct {
	dynamic.Interface
	url  string
	http *http.Client
}

func newClient(config *rest.Config) (*client, error) {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &client{Interface: d, url: config.Host, http: h}, nil
}

func (c *client) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
