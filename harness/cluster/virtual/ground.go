package virtual

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/host"
)

const Name = "sim"

// ground is what a control plane stands on in memory. It implements local.Ground.
type ground struct {
	*machine
	types  *store.Types
	timing contract.Timing

	manifest   func(*unstructured.Unstructured) // Options.Manifest
	altSvc     func(string) string              // Options.AltSvc
	encryption encryption.Around                // Options.Encryption

	cluster *ControlPlane // nil before there is one
}

var (
	_ local.Ground   = (*ground)(nil)
	_ cluster.Memory = (*ground)(nil)
)

// maxNodes is the scenario language's own limit.
const maxNodes = 7

// encryptionPoll is how often API servers look for a changed encryption configuration: as those of local do, or twice an interval.
func (g *ground) encryptionPoll() time.Duration {
	return max(500*time.Millisecond, g.timing.Interval/2)
}

func (g *ground) Machine() cluster.Machine { return g.machine }

// Register implements local.Ground: whatever runs has its name already.
func (g *ground) Register(history.Process, string) {}

// LinkHost implements local.Ground. The name becomes part of an address.
func (g *ground) LinkHost(name string) host.Host {
	return g.network.Host(strings.ReplaceAll(name, " ", "-"))
}

// Port implements local.Ground. A name is an address.
func (g *ground) Port(name string) (string, error) { return name + ":1", nil }

func (g *ground) Cluster(shape pool.Shape, dir, logs string) (*local.Cluster, error) {
	c, err := newControlPlane(g.machine, dir, logs, g.types, cluster.AuditPolicy(), g.encryptionPoll())
	if err != nil {
		return nil, err
	}
	c.altSvc, c.encryption = g.altSvc, g.encryption
	g.cluster = c
	c.addressed = shape.FailsOver
	if shape.Advertises {
		c.alternatives = newAlternatives(c)
	}
	return &local.Cluster{Servers: c, Authority: c.authority(), Storage: c}, nil
}

// tolerance is what the network and the work of servers add to a bound. Nothing else is late where time waits.
const tolerance = 10 * time.Millisecond

func (g *ground) Traits() cluster.Traits {
	takeover := cluster.Takeover
	if g.timing.Interval > cluster.SlowTakeover {
		takeover = cluster.SlowTakeover // a lease that is renewed each 250 ms would be most of what hours of 30 s intervals ask for
	}
	return cluster.Traits{Backend: Name, Timing: g.timing, Tolerance: tolerance, Takeover: takeover, MaxNodes: maxNodes, EncryptionPoll: g.encryptionPoll(), Memory: g, Manifest: g.manifest}
}

func (g *ground) Close(context.Context) error {
	g.KillAll()
	g.network.Close()
	return nil
}
