package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// ServerInfo is where an API server is found. It never changes.
type ServerInfo struct {
	// Name is that of its node, Addr (host:port) where it listens. URL is for clients without a link or an API server in between.
	Name, Addr, URL string
	// FrontAddr is where clients of a kube-apiserver connect that are to learn of others. It is Addr unless Options.Alternatives is set.
	FrontAddr string
	// AuditLog receives audit events, one JSON object a line, before each answer is sent. An aggregated API server has none: the requests that matter
	// are in those of the kube-apiservers. EncryptionFile is the EncryptionConfiguration in force or about to be.
	AuditLog, LogFile, EncryptionFile string
}

// server is what a kube-apiserver and an aggregated API server have in common. It keeps its port and certificate across restarts.
type server struct {
	unit
	ServerInfo
	cp      *ControlPlane
	dir     string
	serving keyPair
	program string
	args    func() []string // beside those of every API server
}

// newServer makes the directory, the port and the certificate, which has further names, and writes the encryption configuration.
func newServer(cp *ControlPlane, name, node string, e Encryption, further ...string) (s server, err error) {
	s = server{unit: newUnit(name, cp.opts), cp: cp, dir: filepath.Join(cp.opts.Dir, name)}
	s.Name, s.LogFile, s.EncryptionFile = node, s.log(), filepath.Join(s.dir, "encryption.yaml")
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s, err
	}
	if s.Addr, err = cp.address.port(); err != nil {
		return s, err
	}
	s.URL = "https://" + s.Addr
	cert, key, err := cp.Serving(name, append([]string{cp.address.ip, "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, further...)...)
	if err != nil {
		return s, err
	}
	if s.serving, err = writeKeyPair(s.dir, "serving", cert, key); err != nil {
		return s, err
	}
	return s, s.SetEncryption(e)
}

func (s *server) Info() ServerInfo { return s.ServerInfo }

// SetEncryption replaces the EncryptionConfiguration in one step. A running API server loads it at its next look (see
// Options.EncryptionPoll), or rejects it silently.
func (s *server) SetEncryption(e Encryption) error {
	text, err := e.YAML()
	if err != nil {
		return fmt.Errorf("encryption configuration of %s: %w", s.name, err)
	}
	return s.SetEncryptionText(text)
}

// SetEncryptionText is SetEncryption with a file made elsewhere. Only an API server can tell whether it is valid.
func (s *server) SetEncryptionText(text []byte) error {
	if err := atomicfile.Write(s.EncryptionFile, text, 0o600); err != nil {
		return fmt.Errorf("write the encryption configuration of %s: %w", s.name, err)
	}
	return nil
}

// Start starts the API server unless it runs, and returns when it is as ready as asked.
func (s *server) Start(ctx context.Context, until Readiness) error {
	args := slices.Concat(s.commonArgs(), s.args(), s.opts.APIServerArgs)
	if _, err := s.run(ctx, s.program, args, s.env()); err != nil {
		return err
	}
	return s.WaitReady(ctx, until)
}

// WaitReady returns when the running API server is as ready as asked.
func (s *server) WaitReady(ctx context.Context, until Readiness) error {
	p := s.Process()
	if p == nil {
		return fmt.Errorf("wait for %s: it was never started", s.name)
	}
	if until == Started {
		return nil
	}
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error { return s.cp.probe.ask(ctx, s.URL+string(until)) })
}

// commonArgs are the flags of every API server.
func (s *server) commonArgs() []string {
	host, port, _ := net.SplitHostPort(s.Addr)
	return []string{
		"--bind-address=" + host,
		"--secure-port=" + port,
		"--cert-dir=" + s.dir,
		"--tls-cert-file=" + s.serving.cert,
		"--tls-private-key-file=" + s.serving.key,
		"--encryption-provider-config=" + s.EncryptionFile,
		"--encryption-provider-config-automatic-reload=true",
		"--profiling=false",
	}
}

func (s *server) env() []string {
	if s.opts.EncryptionPoll == 0 {
		return nil
	}
	return []string{assets.EnvEncryptionPoll + "=" + s.opts.EncryptionPoll.String()}
}
