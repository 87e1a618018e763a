package command

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// load is nil where no streams are served.
func (o StreamOptions) load() (*controller.Streaming, error) {
	if o.Address == "" {
		return nil, nil
	}
	if _, err := o.tls(); err != nil {
		return nil, err
	}
	// The files are read for each connection, so that a certificate or an authority that was renewed is used.
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.tls() }}
	return &controller.Streaming{Address: o.Address, TLS: config, Form: publish.Form(o.Contract)}, nil
}

// tls is the configuration of one connection. A client without a certificate of the authority gets none.
func (o StreamOptions) tls() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		return nil, fmt.Errorf("--stream-certificate and --stream-key: %w", err)
	}
	text, err := os.ReadFile(o.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("--stream-client-ca: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--stream-client-ca %s: no PEM certificate in it", o.ClientCA)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority,
		NextProtos: []string{"h2"}}, nil
}
