package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/assets"
)

// AggregatedSpec is one API server behind the aggregation layer of the kube-apiservers.
type AggregatedSpec struct {
	// Kind is whom it stands for ("openshift-apiserver"), Name that of its node. Both as in ServerSpec.
	Kind, Name string
	// Program is that of k8s.io/sample-apiserver (assets.SampleAPIServer).
	Program string
	// Server is the URL at which it finds a kube-apiserver: it asks that who a client is and what he may do.
	Server string
	// Service is the namespace and name of the Service that it is behind; kube-apiservers expect that name in its certificate.
	ServiceNamespace, ServiceName string
	// EtcdPrefix begins all of its keys; no other API server has the same.
	EtcdPrefix string
	Encryption Encryption
	Args       []string
}

// Aggregated is one aggregated API server. It keeps its port and certificate across restarts.
type Aggregated struct {
	unit
	cp      *ControlPlane
	spec    AggregatedSpec
	dir     string
	port    *port
	serving struct{ cert, key string }
}

// AddAggregated makes an aggregated API server; the caller starts it, after a kube-apiserver. The control plane ends it when it is closed.
func (cp *ControlPlane) AddAggregated(spec AggregatedSpec) (*Aggregated, error) {
	s, err := newAggregated(cp, spec)
	if err != nil {
		return nil, fmt.Errorf("add %s of %s: %w", spec.Kind, spec.Name, err)
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.aggregated = append(cp.aggregated, s)
	return s, nil
}

func newAggregated(cp *ControlPlane, spec AggregatedSpec) (*Aggregated, error) {
	if err := spec.validate(cp.opts); err != nil {
		return nil, err
	}
	name := spec.Kind + "-" + spec.Name
	s := &Aggregated{unit: unit{name: name, opts: cp.opts}, cp: cp, spec: spec, dir: filepath.Join(cp.opts.Dir, name)}
	if err := s.setUp(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s AggregatedSpec) validate(opts Options) error {
	switch {
	case !opts.Aggregation:
		return errors.New("the control plane was made without an aggregation layer")
	case !validName.MatchString(s.Kind) || !validName.MatchString(s.Name):
		return fmt.Errorf("kind %q and name %q: expected letters, digits, '.' and '-', at most 63", s.Kind, s.Name)
	case s.Program == "" || s.Server == "" || s.EtcdPrefix == "":
		return errors.New("program, server or etcd prefix is missing")
	}
	return s.Encryption.Validate()
}

func (s *Aggregated) setUp() (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.port, err = reservePort(); err != nil {
		return err
	}
	service := s.spec.ServiceName + "." + s.spec.ServiceNamespace + ".svc"
	if s.serving.cert, s.serving.key, err = s.cp.pki.serving(s.name, service); err != nil {
		return err
	}
	// OpenShift gives its API servers the role cluster-admin.
	kubeconfig, err := s.cp.Kubeconfig("system:serviceaccount:"+s.spec.ServiceNamespace+":"+s.spec.Kind, []string{adminGroup}, s.spec.Server)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.kubeconfig(), kubeconfig, 0o600); err != nil {
		return err
	}
	return s.SetEncryption(s.spec.Encryption)
}

func (s *Aggregated) kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

// Name is that of its node.
func (s *Aggregated) Name() string { return s.spec.Name }

// Addr is where it listens (127.0.0.1:port); it never changes.
func (s *Aggregated) Addr() string { return s.port.addr() }

// URL is for clients that do not go through a kube-apiserver.
func (s *Aggregated) URL() string { return "https://" + s.Addr() }

// EncryptionFile is the EncryptionConfiguration in force or about to be.
func (s *Aggregated) EncryptionFile() string { return filepath.Join(s.dir, "encryption.yaml") }

// SetEncryption is APIServer.SetEncryption.
func (s *Aggregated) SetEncryption(e Encryption) error {
	if err := e.writeTo(s.EncryptionFile()); err != nil {
		return fmt.Errorf("write the encryption configuration of %s: %w", s.name, err)
	}
	return nil
}

// SetEncryptionText is APIServer.SetEncryptionText.
func (s *Aggregated) SetEncryptionText(text []byte) error {
	if err := writeAtomically(s.EncryptionFile(), text); err != nil {
		return fmt.Errorf("write the encryption configuration of %s: %w", s.name, err)
	}
	return nil
}

// Start starts it unless it runs, and returns when it is as ready as asked. It ends at once where no kube-apiserver answers it.
func (s *Aggregated) Start(ctx context.Context, until Readiness) error {
	if _, err := s.run(ctx, s.spec.Program, s.args(), s.env()); err != nil {
		return err
	}
	return s.WaitReady(ctx, until)
}

// WaitReady returns when the running API server is as ready as asked.
func (s *Aggregated) WaitReady(ctx context.Context, until Readiness) error {
	p := s.Process()
	if p == nil {
		return fmt.Errorf("wait for %s: it was never started", s.name)
	}
	if until == Started {
		return nil
	}
	return p.WaitReady(ctx, readyPoll, func(ctx context.Context) error { return s.cp.probe.ask(ctx, s.URL()+string(until)) })
}

func (s *Aggregated) args() []string {
	return append([]string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + s.port.String(),
		"--permit-port-sharing=true", // see port
		"--etcd-servers=http://" + s.cp.etcd.Addr(),
		"--etcd-prefix=" + s.spec.EtcdPrefix,
		"--cert-dir=" + s.dir,
		"--tls-cert-file=" + s.serving.cert,
		"--tls-private-key-file=" + s.serving.key,
		"--kubeconfig=" + s.kubeconfig(),
		"--authentication-kubeconfig=" + s.kubeconfig(),
		"--authorization-kubeconfig=" + s.kubeconfig(),
		"--encryption-provider-config=" + s.EncryptionFile(),
		"--encryption-provider-config-automatic-reload=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}, s.spec.Args...)
}

func (s *Aggregated) env() []string {
	if s.opts.EncryptionPoll == 0 {
		return nil
	}
	return []string{assets.EnvEncryptionPoll + "=" + s.opts.EncryptionPoll.String()}
}

// close frees what newAggregated made. The process has ended.
func (s *Aggregated) close() error {
	if s.port == nil {
		return nil
	}
	return s.port.free()
}
