package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
)

// Etcd is the control plane's store. It keeps its port and data across restarts. It has an authority of its own and accepts nobody without a certificate
// of it: neither other users of the machine nor programs under test, which have certificates of the API servers' authority.
type Etcd struct {
	unit
	addr  string
	probe *prober

	tls       *tls.Config // of clients
	authority string      // file
	files     keyPair     // for clients, etcd itself and its gateway
}

func newEtcd(opts Options, at *address) (*Etcd, error) {
	e := &Etcd{unit: newUnit("etcd", opts)}
	if err := e.makeCertificate(filepath.Join(opts.Dir, "etcd-pki"), at.ip); err != nil {
		return nil, fmt.Errorf("make the certificates of etcd: %w", err)
	}
	var err error
	e.addr, err = at.port()
	return e, err
}

func (e *Etcd) makeCertificate(dir, ip string) error {
	a, file, err := authorityIn(dir)
	if err != nil {
		return err
	}
	template := certificate("etcd")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.ParseIP(ip), net.IPv4(127, 0, 0, 1)} // a link is at the second
	cert, key, err := a.sign(template)
	if err != nil {
		return err
	}
	if e.tls, err = a.clientTLS(cert, key); err != nil {
		return err
	}
	e.probe, e.authority = newProber(e.tls), file
	e.files, err = writeKeyPair(dir, "etcd", cert, key)
	return err
}

// Addr is where clients connect to (host:port); URL is the same with its scheme, and TLS what they need.
func (e *Etcd) Addr() string     { return e.addr }
func (e *Etcd) URL() string      { return "https://" + e.Addr() }
func (e *Etcd) TLS() *tls.Config { return e.tls.Clone() }

// clientArgs are those of an API server that reaches etcd at an address.
func (e *Etcd) clientArgs(addr string) []string {
	return []string{"--etcd-servers=https://" + addr, "--etcd-cafile=" + e.authority, "--etcd-certfile=" + e.files.cert, "--etcd-keyfile=" + e.files.key}
}

// Start starts etcd unless it runs, and returns when it answers.
func (e *Etcd) Start(ctx context.Context) error {
	p, err := e.run(ctx, e.opts.Binaries.Etcd, e.args(), nil)
	if err != nil {
		return err
	}
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error {
		return e.probe.ask(ctx, e.URL()+"/health")
	})
}

// args make etcd fast instead of safe: its data need to survive a killed process, not a power failure, and the only
// member need not wait long before it elects itself. A heartbeat of 10 ms would cost 2 % of a processor for as long as etcd runs.
func (e *Etcd) args() []string {
	url := e.URL()
	return []string{
		"--name=etcd",
		"--data-dir=" + filepath.Join(e.opts.Dir, "etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=https://127.0.0.1:0",
		"--cert-file=" + e.files.cert, "--key-file=" + e.files.key, "--trusted-ca-file=" + e.authority, "--client-cert-auth",
		"--peer-cert-file=" + e.files.cert, "--peer-key-file=" + e.files.key, "--peer-trusted-ca-file=" + e.authority, "--peer-client-cert-auth",
		"--unsafe-no-fsync=true",
		"--heartbeat-interval=50",
		"--election-timeout=250",
		"--log-level=warn",
	}
}
