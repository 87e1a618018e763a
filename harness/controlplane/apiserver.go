package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// APIServer is one kube-apiserver. It keeps its port, links and certificate across restarts.
type APIServer struct {
	unit
	cp       *ControlPlane
	spec     ServerSpec
	dir      string
	port     *port
	etcdLink *netfault.Link
	serving  struct{ cert, key string }

	linksMu sync.Mutex
	links   []*netfault.Link
}

func newAPIServer(cp *ControlPlane, spec ServerSpec) (*APIServer, error) {
	s := &APIServer{
		unit: unit{name: "apiserver-" + spec.Name, opts: cp.opts}, cp: cp, spec: spec,
		dir: filepath.Join(cp.opts.Dir, "apiserver-"+spec.Name),
	}
	if err := s.setUp(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *APIServer) setUp() (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.port, err = reservePort(); err != nil {
		return err
	}
	if s.etcdLink, err = netfault.NewLink(s.name+" to etcd", s.cp.etcd.Addr()); err != nil {
		return err
	}
	if s.serving.cert, s.serving.key, err = s.cp.pki.serving(s.name); err != nil {
		return err
	}
	return s.SetEncryption(s.spec.Encryption)
}

// Name is that of its ServerSpec.
func (s *APIServer) Name() string { return s.spec.Name }

// Addr is where it listens (127.0.0.1:port); it never changes.
func (s *APIServer) Addr() string { return s.port.addr() }

// URL is for clients without a link in between.
func (s *APIServer) URL() string { return "https://" + s.Addr() }

// EtcdLink carries everything between this API server and etcd.
func (s *APIServer) EtcdLink() *netfault.Link { return s.etcdLink }

// NewLink opens another way for clients to this API server. It lives until the API server is removed.
func (s *APIServer) NewLink(name string) (*netfault.Link, error) {
	l, err := netfault.NewLink(name+" to "+s.name, s.Addr())
	if err != nil {
		return nil, err
	}
	s.linksMu.Lock()
	defer s.linksMu.Unlock()
	s.links = append(s.links, l)
	return l, nil
}

// AuditLog is the file that receives audit events, one JSON object a line, before each answer is sent.
func (s *APIServer) AuditLog() string {
	return filepath.Join(s.opts.LogDir, "audit-"+s.spec.Name+".jsonl")
}

// EncryptionFile is the EncryptionConfiguration in force or about to be.
func (s *APIServer) EncryptionFile() string { return filepath.Join(s.dir, "encryption.yaml") }

// SetEncryption replaces the EncryptionConfiguration in one step. A running API server loads it at its next look (see
// Options.EncryptionPoll), or rejects it silently.
func (s *APIServer) SetEncryption(e Encryption) error {
	if err := e.writeTo(s.EncryptionFile()); err != nil {
		return fmt.Errorf("write the encryption configuration of API server %s: %w", s.Name(), err)
	}
	return nil
}

// SetEncryptionText is SetEncryption with a file that somebody else has made. Whether an API server takes it, only an API server says.
func (s *APIServer) SetEncryptionText(text []byte) error {
	if err := writeAtomically(s.EncryptionFile(), text); err != nil {
		return fmt.Errorf("write the encryption configuration of API server %s: %w", s.Name(), err)
	}
	return nil
}

// Start starts the API server unless it runs, and returns when it is as ready as asked.
func (s *APIServer) Start(ctx context.Context, until Readiness) error {
	if _, err := s.run(ctx, s.opts.Binaries.KubeAPIServer, s.args(), s.env()); err != nil {
		return err
	}
	return s.WaitReady(ctx, until)
}

// WaitReady returns when the running API server is as ready as asked.
func (s *APIServer) WaitReady(ctx context.Context, until Readiness) error {
	p := s.Process()
	if p == nil {
		return fmt.Errorf("wait for %s: it was never started", s.name)
	}
	if until == Started {
		return nil
	}
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error { return s.cp.probe.ask(ctx, s.URL()+string(until)) })
}

// Restart stops the API server, or takes it as dead if it is, and starts it again.
func (s *APIServer) Restart(ctx context.Context, until Readiness) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx, until)
}

// close frees what New made. The process has ended.
func (s *APIServer) close() error {
	s.linksMu.Lock()
	defer s.linksMu.Unlock()
	var errs []error
	for _, l := range append(s.links, s.etcdLink) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	s.links = nil
	if s.port != nil {
		errs = append(errs, s.port.free())
	}
	return errors.Join(errs...)
}
