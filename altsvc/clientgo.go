package altsvc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Wrap makes clients of a rest.Config use alternatives. It changes config, which must be complete: the alternatives get its
// certificate authority and client certificate. Clients that are made afterwards share the alternatives and the connections to
// them. Their connections to the origin are in client-go's cache of transports, as without Wrap. The owner closes the returned
// Services after the last client.
//
// Wrappers that config has already see each request once, whichever server it goes to.
func Wrap(config *rest.Config, o Options) (*Services, error) {
	if config.Transport != nil {
		return nil, errors.New("altsvc: wrap: the configuration has a transport of its own, whose TLS configuration is not known: use New")
	}
	origin, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("altsvc: wrap: read the host of the configuration: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("altsvc: wrap: read the TLS configuration: %w", err)
	}
	if o.Dial == nil {
		o.Dial = config.Dial
	}
	if o.Proxy == nil {
		o.Proxy = config.Proxy
	}
	o.DisableCompression = o.DisableCompression || config.DisableCompression
	s, err := New(origin.Scheme+"://"+origin.Host, tlsConfig, o)
	if err != nil {
		return nil, err
	}
	config.WrapTransport = transport.Wrappers(s.wrap, config.WrapTransport)
	return s, nil
}

// wrap is a transport.WrapperFunc. It leaves the round trippers of exec, attach and port-forward alone: they upgrade connections,
// which HTTP/2 does not have, and do not show it in the request.
func (s *Services) wrap(base http.RoundTripper) http.RoundTripper {
	if _, upgrades := base.(interface{ TLSClientConfig() *tls.Config }); upgrades {
		return base
	}
	return s.RoundTripper(base)
}
