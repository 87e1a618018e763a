package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// server is what a kube-apiserver and an aggregated API server have in common. It keeps its port and certificate across restarts.
type server struct {
	unit
	cp      *ControlPlane
	node    string // its name to the caller
	title   string // its name in errors
	dir     string
	port    *port
	serving struct{ cert, key string } // files
	command func() (path string, args []string)
}

func newServer(cp *ControlPlane, name, node, title string) server {
	return server{unit: newUnit(name, cp.opts), cp: cp, node: node, title: title, dir: filepath.Join(cp.opts.Dir, name)}
}

// setUp makes the directory, the port and the certificate, which has further names, and writes the encryption configuration.
func (s *server) setUp(e Encryption, further ...string) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.port, err = reservePort(); err != nil {
		return err
	}
	if s.serving.cert, s.serving.key, err = s.cp.pki.serving(s.name, further...); err != nil {
		return err
	}
	return s.SetEncryption(e)
}

// Name is that of its node.
func (s *server) Name() string { return s.node }

// Addr is where it listens (127.0.0.1:port); it never changes.
func (s *server) Addr() string { return s.port.addr() }

// URL is for clients without a link or an API server in between.
func (s *server) URL() string { return "https://" + s.Addr() }

// EncryptionFile is the EncryptionConfiguration in force or about to be.
func (s *server) EncryptionFile() string { return filepath.Join(s.dir, "encryption.yaml") }

// SetEncryption replaces the EncryptionConfiguration in one step. A running API server loads it at its next look (see
// Options.EncryptionPoll), or rejects it silently.
func (s *server) SetEncryption(e Encryption) error {
	text, err := e.YAML()
	if err != nil {
		return s.encryptionError(err)
	}
	return s.SetEncryptionText(text)
}

// SetEncryptionText is SetEncryption with a file made elsewhere. Only an API server can tell whether it is valid.
func (s *server) SetEncryptionText(text []byte) error {
	return s.encryptionError(atomicfile.Write(s.EncryptionFile(), text, 0o600))
}

func (s *server) encryptionError(err error) error {
	if err != nil {
		return fmt.Errorf("write the encryption configuration of %s: %w", s.title, err)
	}
	return nil
}

// Start starts the API server unless it runs, and returns when it is as ready as asked.
func (s *server) Start(ctx context.Context, until Readiness) error {
	path, args := s.command()
	if _, err := s.run(ctx, path, args, s.env()); err != nil {
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
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error { return s.cp.probe.ask(ctx, s.URL()+string(until)) })
}

// args are the flags of every API server.
func (s *server) args() []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + s.port.String(),
		"--permit-port-sharing=true", // see port
		"--cert-dir=" + s.dir,
		"--tls-cert-file=" + s.serving.cert,
		"--tls-private-key-file=" + s.serving.key,
		"--encryption-provider-config=" + s.EncryptionFile(),
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

// close frees the port. The process has ended.
func (s *server) close() error {
	if s.port == nil {
		return nil
	}
	return s.port.free()
}
