package live

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Client talks to one address under one identity, over connections of its own.
type Client struct {
	dynamic.Interface
	meta metadata.Interface
	url  string
	http *http.Client
}

// NewClient talks to a server; it does not connect yet. Close it after use.
func NewClient(config *rest.Config) (*Client, error) {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), h)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{Interface: d, meta: m, url: config.Host, http: h}, nil
}

// Close drops the idle connections.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
