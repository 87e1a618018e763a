package virtualcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/identity"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// LoadBalancer is the host that passes connections on to the API servers that run, in turn.
const LoadBalancer = "load-balancer"

// connectTimeout is how long the load balancer waits for an API server that does not answer, before it tries the next.
const connectTimeout = time.Second

// Options of a cluster. All are optional.
type Options struct {
	// Seed decides latencies, and everything that libraries leave to chance.
	Seed uint64
	// APIServers are their names, which are those of their hosts; none: "cp-1". All share one store.
	APIServers []string
	// CRDs are served beside the resources that package documentation lists. Each must have one served version.
	CRDs []*apiextensions.CustomResourceDefinition
	// Resources are served without a schema.
	Resources []Resource
	// Audit returns what receives the audit lines of an API server, in JSON (audit.k8s.io/v1, level RequestResponse); nil: there are none.
	Audit func(apiServer string) io.Writer
}

// Cluster is a control plane in memory. Its methods may be called at the same time.
type Cluster struct {
	dir        string
	remove     func() error
	seed       uint64
	network    *network.Network
	objects    *apiserver.Cluster
	access     *apiserver.Access
	identities *identity.Identities
	balancer   *netfault.LoadBalancer
	servers    map[string]*apiServer

	changing turn.Turn // one fault changes at a time

	mu      sync.Mutex
	hosts   map[string]bool
	active  []Fault             // in the order of Inject
	sockets map[string][]string // of hosts that are down
}

// Run runs f with a new cluster in virtual time, as a part of test t. ctx ends when f returns; all goroutines that f started must end then.
// An error of the cluster fails the test.
func Run(t *testing.T, o Options, f func(ctx context.Context, t *testing.T, c *Cluster)) {
	t.Helper()
	bubble.Test(t, o.Seed, func(t *testing.T) {
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(context.Background())
		defer func() {
			end()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(ctx, t, c)
	})
}

// New is a cluster whose API servers run. It is called in virtual time (package bubble), and Close ends it; in tests Run does both.
func New(o Options) (_ *Cluster, err error) {
	if len(o.APIServers) == 0 {
		o.APIServers = []string{"cp-1"}
	}
	types, err := loadTypes(o.CRDs, o.Resources)
	if err != nil {
		return nil, fmt.Errorf("virtual cluster: %w", err)
	}
	c := &Cluster{seed: o.Seed, network: network.New(o.Seed), objects: apiserver.NewCluster(types), servers: map[string]*apiServer{},
		changing: turn.New(), hosts: map[string]bool{LoadBalancer: true}, sockets: map[string][]string{}}
	c.access = apiserver.NewAccess(c.objects)
	if c.dir, c.remove, err = bubble.MakeFolder(); err != nil {
		return nil, fmt.Errorf("virtual cluster: make a folder: %w", err)
	}
	if err := c.boot(o); err != nil {
		return nil, errors.Join(fmt.Errorf("virtual cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) boot(o Options) (err error) {
	if c.identities, err = identity.New(); err != nil {
		return err
	}
	c.identities.Authority.ServerName = "kubernetes"
	if c.balancer, err = netfault.NewLoadBalancer(c.network.Host(LoadBalancer), LoadBalancer, connectTimeout); err != nil {
		return err
	}
	for _, name := range o.APIServers {
		if name == "" || c.hosts[name] {
			return fmt.Errorf("API server %q: expected a name that no other host has", name)
		}
		c.hosts[name] = true
		s := newAPIServer(c, name)
		if o.Audit != nil {
			s.audit = o.Audit(name)
		}
		c.servers[name] = s
	}
	if err := c.SetEncryption(&apiserverconfig.EncryptionConfiguration{Resources: []apiserverconfig.ResourceConfiguration{
		{Resources: []string{"secrets"}, Providers: []apiserverconfig.ProviderConfiguration{{Identity: &apiserverconfig.IdentityConfiguration{}}}}}}); err != nil {
		return err
	}
	for _, name := range o.APIServers {
		if err := c.servers[name].start(context.Background()); err != nil {
			return err
		}
		if err := c.balancer.Add(name, name+securePort); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the API servers, and breaks all connections.
func (c *Cluster) Close() error {
	for _, s := range c.servers {
		s.kill()
	}
	var errs []error
	if c.balancer != nil {
		errs = append(errs, c.balancer.Close())
	}
	c.network.Close()
	return errors.Join(append(errs, c.remove())...)
}

// Dir is a folder for files and unix sockets, which Close removes. Its path is the same in every run, and short enough for sockets.
func (c *Cluster) Dir() string { return c.dir }

// Stored is what etcd has of an object: ciphertext, if its resource is encrypted, and JSON otherwise. Nil: there is no such object.
func (c *Cluster) Stored(r schema.GroupVersionResource, namespace, name string) []byte {
	return c.objects.Stored(store.Key{Resource: r, Namespace: namespace, Name: name})
}

// server is one of the API servers.
func (c *Cluster) server(name string) (*apiServer, error) {
	if s := c.servers[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("API server %q: expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(c.servers)), ", "))
}

// SetEncryption replaces the EncryptionConfiguration of API servers; without names, of all. Those that run follow as kube-apiserver does: they read the
// file once a minute, and the configuration comes into force when all its plugins are healthy. An API server that starts has it at once. Objects that
// are stored stay as they are until they are written. Sockets of KMS plugins are below Dir. A configuration that kube-apiserver would not accept
// is an error, and changes nothing.
func (c *Cluster) SetEncryption(e *apiserverconfig.EncryptionConfiguration, apiServers ...string) error {
	text, err := controlplane.EncryptionYAML(e)
	if err != nil {
		return fmt.Errorf("encryption configuration: %w", err)
	}
	if len(apiServers) == 0 {
		apiServers = slices.Sorted(maps.Keys(c.servers))
	}
	var all []*apiServer
	for _, name := range apiServers {
		s, err := c.server(name)
		if err != nil {
			return fmt.Errorf("encryption configuration: %w", err)
		}
		all = append(all, s)
	}
	for _, s := range all {
		if err := atomicfile.Write(s.encryptionFile(), text, 0o600); err != nil {
			return fmt.Errorf("encryption configuration of %s: %w", s.name, err)
		}
	}
	return nil
}
