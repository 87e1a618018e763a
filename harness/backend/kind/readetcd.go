package kind

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// ReadEtcd implements live.Plane.
func (p *plane) ReadEtcd(ctx context.Context, key string) (value []byte, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		value, err = live.ReadEtcdGateway(ctx, transport, url, key)
		return err
	})
	return value, err
}

// RangeEtcd implements live.Plane.
func (p *plane) RangeEtcd(ctx context.Context, r live.Range) (found []live.KeyValue, more bool, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		found, more, err = live.RangeEtcdGateway(ctx, transport, url, r)
		return err
	})
	return found, more, err
}

// throughEtcd asks the member of any node.
func (p *plane) throughEtcd(ask func(transport http.RoundTripper, url string) error) error {
	transport := &http.Transport{TLSClientConfig: p.etcdTLS, DisableKeepAlives: true}
	var errs []error
	for _, n := range p.nodes.List() {
		err := ask(transport, "https://"+p.address(n.Name)+":"+portEtcd)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loadEtcdTLS reads the certificates that etcd's clients on a node use.
func loadEtcdTLS(ctx context.Context, container string) (*tls.Config, error) {
	read := func(file string) ([]byte, error) {
		text, err := inside(ctx, container, nil, "cat", "/etc/kubernetes/pki/"+file)
		return []byte(text), err
	}
	ca, err1 := read("etcd/ca.crt")
	cert, err2 := read("etcd/healthcheck-client.crt")
	key, err3 := read("etcd/healthcheck-client.key")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
