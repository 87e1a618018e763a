// Package virtual is a control plane in memory, on which programs run unchanged and in virtual time (package bubble): API servers with
// kube-apiserver's encryption, authorization and admission on one store, plugins, reporters, aggregators and operators, on a network in memory.
package virtual

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/identity"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
)

// ControlPlane is one store and its API servers. It does for sim what etcd and kube-apiserver processes do for local,
// behind the same interfaces, so that verbs, resets and recorders are those of local. Its methods may be called at the
// same time.
type ControlPlane struct {
	machine        *machine
	dir, logs      string
	objects        *apiserver.Cluster
	access         *apiserver.Access
	identities     *identity.Identities
	audit          audit.PolicyRuleEvaluator
	encryptionPoll time.Duration
	etcd           *etcd
	envelopes      *encryption.Log
	refused        refusals
	addressed      bool                // API servers have IP addresses, by which clients tell which is theirs
	alternatives   *alternatives       // nil: API servers do not tell of each other
	altSvc         func(string) string // Options.AltSvc
	encryption     encryption.Around   // Options.Encryption

	mu         sync.Mutex
	layer      *aggregation  // nil: there are no aggregated API servers
	groups     []*aggregated // by which they are grouped
	aggregated []*server
	servers    []*server
	made       byte // API servers, for their addresses
}

var (
	_ local.Servers   = (*ControlPlane)(nil)
	_ local.Authority = authority{}
	_ cluster.Storage = (*ControlPlane)(nil)
)

// newControlPlane has no API servers yet. dir and logs are folders of this machine.
func newControlPlane(m *machine, dir, logs string, types *store.Types, auditPolicy []byte, encryptionPoll time.Duration) (*ControlPlane, error) {
	rules, err := policy.LoadPolicyFromBytes(auditPolicy)
	if err != nil {
		return nil, fmt.Errorf("read the audit policy: %w", err)
	}
	identities, err := identity.New()
	if err != nil {
		return nil, err
	}
	identities.Authority.ServerName = "kubernetes" // addresses have names that no certificate has
	objects := apiserver.NewCluster(types)
	c := &ControlPlane{machine: m, dir: dir, logs: logs, objects: objects, access: apiserver.NewAccess(objects), identities: identities,
		audit: policy.NewPolicyRuleEvaluator(rules), encryptionPoll: encryptionPoll, etcd: newEtcd(m), envelopes: encryption.NewLog()}
	identities.Valid = c.stands
	return c, nil
}

// stands reports whether the pod of a token exists, with the UID of the token, or the Secret with the token: a token ends with what it is bound to.
func (c *ControlPlane) stands(b identity.Bound) bool {
	object := func(resource, name string) *unstructured.Unstructured {
		return c.objects.Object(store.Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: b.Namespace, Name: name})
	}
	switch {
	case b.Secret != "":
		secret := object("secrets", b.Secret)
		if secret == nil {
			return false
		}
		text, _, _ := unstructured.NestedString(secret.Object, "data", "token")
		return text == base64.StdEncoding.EncodeToString([]byte(b.Token))
	case b.Pod != "":
		pod := object("pods", b.Pod)
		return pod != nil && pod.GetUID() == b.PodUID
	}
	return true
}

// Add implements local.Servers: an API server for a node, which does not run yet. Two of one name are an error.
func (c *ControlPlane) Add(spec controlplane.ServerSpec) (local.NodeServer, error) {
	s, err := newServer(c, spec.Name, nil)
	if err == nil {
		err = s.setEncryption(spec.Encryption)
	}
	if err != nil {
		return nil, fmt.Errorf("add the API server of %s: %w", spec.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.servers, func(o *server) bool { return o.node == s.node }) {
		return nil, fmt.Errorf("add the API server of %s: %w", spec.Name, controlplane.ErrServerExists)
	}
	c.servers = append(c.servers, s) // in an order that does not depend on which of several is added first in an instant
	slices.SortFunc(c.servers, func(a, b *server) int { return strings.Compare(a.node, b.node) })
	return s, nil
}

// address is where the API server of a node is found, without port. In scenarios with alternative services clients
// compare the addresses of API servers with their own, so each server has an IP address; elsewhere the name is enough.
func (c *ControlPlane) address(node string) string {
	if !c.addressed {
		return node
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	at := netip.AddrFrom4([4]byte{10, 0, 0, c.made})
	c.machine.setAddress(node, at)
	return at.String()
}

func (c *ControlPlane) Remove(ctx context.Context, node string) error {
	s, err := c.find(node)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.servers = slices.DeleteFunc(c.servers, func(o *server) bool { return o == s })
	c.mu.Unlock()
	return s.Kill(ctx)
}

func (c *ControlPlane) find(node string) (*server, error) {
	for _, s := range c.all() {
		if s.node == node {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the API server of %s: %w", node, controlplane.ErrNoServer)
}

// Start starts etcd and every API server, one after another: in virtual time that costs nothing, and the order is the same in each run.
func (c *ControlPlane) Start(ctx context.Context, until controlplane.Readiness) error {
	if err := c.etcd.Start(ctx); err != nil {
		return err
	}
	for _, s := range c.all() {
		if err := s.Start(ctx, until); err != nil {
			return err
		}
	}
	if c.alternatives != nil { // they are known before the first client comes
		c.alternatives.ask(ctx)
	}
	return nil
}

func (c *ControlPlane) all() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers)
}

func (c *ControlPlane) allAggregated() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.aggregated)
}

func (c *ControlPlane) aggregates() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.layer != nil
}

// authority implements local.Authority.
type authority struct {
	controlplane.Authority
	cluster *ControlPlane
}

func (a authority) AccountKey() ([]byte, error) { return a.cluster.identities.AccountKey(), nil }

// RESTConfig is how the harness reaches a server under an identity.
func (a authority) RESTConfig(user string, groups []string, url string) (*rest.Config, error) {
	config, err := a.Authority.RESTConfig(user, groups, url)
	if err != nil {
		return nil, err
	}
	config.Dial = a.cluster.machine.Host().DialFunc
	config.Wrap(a.cluster.machine.network.Wrap(harnessHost))
	return config, nil
}

// authority signs for the harness.
func (c *ControlPlane) authority() authority { return authority{c.identities.Authority, c} }

// Etcd implements cluster.Storage: there is one member, whatever the node.
func (c *ControlPlane) Etcd(string) ([]cluster.Target, error) {
	return []cluster.Target{{Unit: c.etcd, Identity: history.Process{Role: history.RoleEtcd}}}, nil
}

// plainText begins what kube-apiserver stores of a built-in object that is not encrypted: the magic number of its
// protobuf encoding. JSON follows it here, since only the prefix is looked at.
var plainText = []byte("k8s\x00")

// RangeEtcd builds keys and values of the objects that may be encrypted. An object that is not encrypted has no stored
// bytes (apiserver.Cluster).
func (c *ControlPlane) RangeEtcd(_ context.Context, r cluster.Range) (found []cluster.KeyValue, more bool, err error) {
	if runs, _ := c.etcd.state(); !runs {
		return nil, false, errors.New("etcd does not run")
	}
	for _, p := range c.parts() {
		for _, v := range p.objects.InEtcd(p.registry, p.group, r.From, r.End) {
			value := p.objects.Stored(v.Key)
			if value == nil {
				text, err := json.Marshal(v.Shown().Object)
				if err != nil {
					continue // it came from JSON
				}
				value = append(bytes.Clone(plainText), text...)
			}
			found = append(found, cluster.KeyValue{Key: []byte(apiserver.EtcdKey(p.registry, v.Key)), Value: value})
		}
	}
	slices.SortFunc(found, func(a, b cluster.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	if limit := max(r.Limit, 1); len(found) > limit {
		return found[:limit], true, nil
	}
	return found, false, nil
}

// Snapshot implements cluster.Storage.
func (c *ControlPlane) Snapshot(_ context.Context, from, end string) (restore func(context.Context) error, err error) {
	parts := c.parts()
	kept := make([][]apiserver.Kept, len(parts))
	for i, p := range parts {
		kept[i] = p.objects.Keep(p.registry, p.group, from, end)
	}
	return func(context.Context) error {
		var errs []error
		for i, p := range parts {
			errs = append(errs, p.objects.Restore(p.registry, p.group, from, end, kept[i]))
		}
		return errors.Join(errs...)
	}, nil
}

// part of etcd: the objects of a group.
type part struct {
	registry string
	objects  *apiserver.Cluster
	group    string
}

// parts are those in which objects may be encrypted.
func (c *ControlPlane) parts() []part {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []part{{apiserver.Registry, c.objects, ""}}
	for _, a := range c.groups {
		all = append(all, part{a.Prefix(), a.objects, cluster.Wardle})
	}
	return all
}

func (c *ControlPlane) Close(ctx context.Context) error {
	if c.alternatives != nil {
		c.alternatives.close()
	}
	var errs []error
	for _, s := range slices.Concat(c.allAggregated(), c.all()) {
		errs = append(errs, s.Kill(ctx))
	}
	return errors.Join(errs...)
}
