package publish

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// OwnTransport replaces client-go's transport where connections come from a machine in memory (rest.Config has a dialer) and the certificate from
// a file: client-go watches the file until the process ends. As there, each handshake reads it, and another certificate closes the connections that
// were made with the last.
func OwnTransport(c *rest.Config) error {
	if c.Dial == nil || c.CertFile == "" {
		return nil
	}
	config, err := rest.TLSConfigFor(c)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", c.Host, err)
	}
	dialer := connrotation.NewDialer(connrotation.DialFunc(c.Dial))
	load := config.GetClientCertificate
	var mu sync.Mutex
	var shown *tls.Certificate
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		given, err := load(request)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		last := shown
		shown = given
		mu.Unlock()
		if last != nil && !slices.EqualFunc(last.Certificate, given.Certificate, bytes.Equal) {
			dialer.CloseAll()
		}
		return given, nil
	}
	c.Transport = utilnet.SetTransportDefaults(&http.Transport{
		TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: config, DialContext: dialer.DialContext, DisableCompression: c.DisableCompression,
	})
	c.TLSClientConfig, c.Dial = rest.TLSClientConfig{}, nil
	return nil
}
