package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/keyutil"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/process"
)

// Options of a control plane.
type Options struct {
	Binaries assets.Binaries
	// Releases are programs of kube-apiservers of other releases of Kubernetes (ServerSpec.Release).
	Releases map[string]string
	// Supervisor starts the processes; its owner closes it after the control plane.
	Supervisor *process.Supervisor
	// Dir is for the data, certificates and configuration; it exists and is private. The caller removes it.
	Dir string
	// LogDir receives the log of every process and the audit logs; it exists.
	LogDir string
	// AuditPolicy is the YAML of an audit.k8s.io/v1 Policy for all API servers; empty: nothing is audited.
	AuditPolicy []byte
	// EncryptionPoll is how often API servers look for a changed encryption configuration, if the binary can be told
	// (assets.Binaries.EncryptionPoll); 0 is the stock behaviour, one minute. In whole milliseconds.
	EncryptionPoll time.Duration
	// APIServerArgs are further flags of every API server, also of aggregated ones; a later flag wins.
	APIServerArgs []string
	// Aggregation lets the API servers pass requests on to aggregated ones (ControlPlane.AddAggregated).
	Aggregation bool
	// Alternatives puts a proxy in front of each API server (APIServer.FrontAddr) that adds the Alt-Svc field with all ready ones. It needs
	// Aggregation, by which API servers believe a proxy.
	Alternatives bool
	// Servers are there from the beginning.
	Servers []ServerSpec
}

type ServerSpec struct {
	// Name is that of its node ("cp-1"): letters, digits, '.' and '-', at most 63.
	Name string
	// Encryption is its configuration; the zero value encrypts nothing.
	Encryption Encryption
	// Release of Kubernetes, one of Options.Releases; empty: that of Options.Binaries.
	Release string
}

func (o Options) validate() error {
	switch {
	case o.Binaries.Etcd == "" || o.Binaries.KubeAPIServer == "":
		return errors.New("control plane: the paths of etcd and kube-apiserver are missing: see assets.Ensure")
	case o.Supervisor == nil:
		return errors.New("control plane: a supervisor is missing")
	case o.Dir == "" || o.LogDir == "":
		return errors.New("control plane: the directories for data and logs are missing")
	case o.Alternatives && !o.Aggregation:
		return errors.New("control plane: Alternatives needs Aggregation")
	case o.EncryptionPoll < 0:
		return fmt.Errorf("control plane: the encryption poll is %v, expected 0 or more", o.EncryptionPoll)
	}
	return nil
}

var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`)

func (s ServerSpec) validate() error {
	if !validName.MatchString(s.Name) {
		return fmt.Errorf("API server %q: expected a name of letters, digits, '.' and '-', at most 63", s.Name)
	}
	return nil
}

// Errors of a ControlPlane.
var (
	ErrServerExists = errors.New("there is an API server of this name already")
	ErrNoServer     = errors.New("there is no API server of this name")
)

// ControlPlane is one etcd and its API servers. Its methods may be called at the same time.
type ControlPlane struct {
	// Authority signs for its API servers and clients. A server in its methods is the URL of an API server, a link or a load
	// balancer on 127.0.0.1.
	Authority

	authorityFile string
	address       *address
	opts          Options
	etcd          *Etcd
	probe         *prober

	aggregation  *aggregation  // nil: none
	alternatives *alternatives // nil: none

	mu         sync.Mutex
	servers    []*APIServer
	aggregated []*Aggregated
}

// New makes certificates, ports, links and configuration files. It starts no process. The owner must Close it, before it
// closes the supervisor.
func New(opts Options) (*ControlPlane, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	cp := &ControlPlane{opts: opts}
	if err := cp.setUp(); err != nil {
		return nil, errors.Join(err, cp.Close(context.Background()))
	}
	return cp, nil
}

func (cp *ControlPlane) setUp() (err error) {
	if cp.address, err = claimAddress(); err != nil {
		return err
	}
	if err := cp.makeCertificates(); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if len(cp.opts.AuditPolicy) > 0 {
		if err := os.WriteFile(cp.auditPolicyFile(), cp.opts.AuditPolicy, 0o600); err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
	}
	if cp.etcd, err = newEtcd(cp.opts, cp.address); err != nil {
		return err
	}
	if cp.opts.Aggregation {
		if cp.aggregation, err = newAggregation(filepath.Join(cp.opts.Dir, "front-proxy")); err != nil {
			return err
		}
	}
	if cp.opts.Alternatives {
		cp.alternatives = newAlternatives(cp)
	}
	for _, spec := range cp.opts.Servers {
		if _, err := cp.Add(spec); err != nil {
			return err
		}
	}
	return nil
}

func (cp *ControlPlane) makeCertificates() (err error) {
	if cp.Authority, cp.authorityFile, err = authorityIn(filepath.Join(cp.opts.Dir, "pki")); err != nil {
		return err
	}
	cert, key, _, err := cp.client(adminUser, []string{adminGroup}, 0)
	if err != nil {
		return err
	}
	config, err := cp.clientTLS(cert, key)
	if err != nil {
		return err
	}
	cp.probe = newProber(config)
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	return os.WriteFile(cp.serviceAccountKey(), accounts, 0o600)
}

// serviceAccountKey is the file of the key that all API servers sign and verify the tokens of service accounts with.
func (cp *ControlPlane) serviceAccountKey() string {
	return filepath.Join(cp.opts.Dir, "pki", "service-account.key")
}

func (cp *ControlPlane) auditPolicyFile() string {
	return filepath.Join(cp.opts.Dir, "audit-policy.yaml")
}

// Port is an address (host:port) for another program of the control plane: it stays free while the program does not run.
func (cp *ControlPlane) Port() (string, error) { return cp.address.port() }

// Etcd is the only one.
func (cp *ControlPlane) Etcd() *Etcd { return cp.etcd }

// Servers are the API servers at this moment, in the order in which they were added.
func (cp *ControlPlane) Servers() []*APIServer {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return slices.Clone(cp.servers)
}

// Server finds one by name.
func (cp *ControlPlane) Server(name string) (*APIServer, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if i := cp.find(name); i >= 0 {
		return cp.servers[i], nil
	}
	return nil, fmt.Errorf("API server %q: %w", name, ErrNoServer)
}

func (cp *ControlPlane) find(name string) int {
	return slices.IndexFunc(cp.servers, func(s *APIServer) bool { return s.Name == name })
}

// Add makes another API server; the caller starts it. A name can be used again after Remove: its logs are appended to.
func (cp *ControlPlane) Add(spec ServerSpec) (*APIServer, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.find(spec.Name) >= 0 {
		return nil, fmt.Errorf("add API server %q: %w", spec.Name, ErrServerExists)
	}
	s, err := newAPIServer(cp, spec)
	if err != nil {
		return nil, fmt.Errorf("add API server %s: %w", spec.Name, err)
	}
	cp.servers = append(cp.servers, s)
	return s, nil
}

// Remove stops an API server, closes its links and forgets it.
func (cp *ControlPlane) Remove(ctx context.Context, name string) error {
	s, err := cp.Server(name)
	if err != nil {
		return err
	}
	err = errors.Join(s.Stop(ctx), s.close())
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if i := cp.find(name); i >= 0 {
		cp.servers = slices.Delete(cp.servers, i, i+1)
	}
	if err != nil {
		return fmt.Errorf("remove API server %s: %w", name, err)
	}
	return nil
}

// Start starts etcd, and then all API servers at the same time: one that meets a refused port backs off for a second. It returns when each is as
// ready as asked. Those that run already are only waited for.
func (cp *ControlPlane) Start(ctx context.Context, until Readiness) error {
	if err := cp.etcd.Start(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range cp.Servers() {
		group.Go(func() error { return s.Start(ctx, until) })
	}
	return group.Wait()
}

// Close kills everything, because nothing of it is used again, and closes the links. It is safe to call twice.
func (cp *ControlPlane) Close(ctx context.Context) error {
	var errs []error
	if cp.alternatives != nil {
		cp.alternatives.close()
	}
	cp.mu.Lock()
	aggregated := slices.Clone(cp.aggregated)
	cp.mu.Unlock()
	for _, s := range aggregated {
		errs = append(errs, s.Kill(ctx))
	}
	for _, s := range cp.Servers() {
		errs = append(errs, s.Kill(ctx), s.close())
	}
	if cp.etcd != nil {
		errs = append(errs, cp.etcd.Kill(ctx))
		cp.etcd.probe.close()
	}
	if cp.probe != nil {
		cp.probe.close()
	}
	if cp.address != nil {
		errs = append(errs, cp.address.close())
	}
	return errors.Join(errs...)
}
