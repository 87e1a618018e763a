package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// apiServer is a unit whose start waits for what can be had: /livez always comes, /readyz needs every plugin.
type apiServer struct {
	Server
	group *apiServers
}

var _ cluster.Server = apiServer{}

func (s apiServer) Start(ctx context.Context) error {
	if err := s.Server.Start(ctx, controlplane.Live); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, cluster.ReadyGrace)
	defer cancel()
	_ = s.Ready(ready) // with a dead plugin it never is
	return ctx.Err()
}

// SetRelease implements cluster.Upgrader.
func (s apiServer) SetRelease(release string) error {
	u, ok := s.Server.(cluster.Upgrader)
	if !ok {
		return errors.New(cluster.NoReleases)
	}
	return u.SetRelease(release)
}

func (s apiServer) Silence(ctx context.Context) error { return cluster.Silence(ctx, s.Server) }

func (s apiServer) Ready(ctx context.Context) error { return s.WaitReady(ctx, controlplane.Ready) }

func (s apiServer) SetEncryption(told cluster.Encryption) (hash string, err error) {
	text, err := s.group.encryption(s.Info().Name, told).YAML()
	if err != nil {
		return "", err
	}
	return s.write(text)
}

// RollOut implements cluster.Server: the sockets are in the node's own folder.
func (s apiServer) RollOut(file []byte) (hash string, err error) {
	return s.write(bytes.ReplaceAll(file, []byte(contract.SocketDir), []byte(s.group.nodeDir(s.Info().Name))))
}

// write gives the hash by which an API server names its encryption configuration.
func (s apiServer) write(text []byte) (hash string, err error) {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text)), s.SetEncryptionText(text)
}

// loadBalancer runs within the harness. When it is paused or ended, its clients observe what they would of a process.
type loadBalancer struct {
	cluster.Phases
	host   func(name string) host.Host
	record func(at time.Time, p history.Process)

	mu    sync.Mutex
	links map[*netfault.Link]bool // from its clients
	fault netfault.Fault
	phase cluster.Phase
}

// join opens a link of a client's to it, at addr.
func (l *loadBalancer) join(client, addr string) (*netfault.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	link, err := netfault.NewLink(l.host(client+" to load balancer"), client+" to load balancer", addr)
	if err != nil {
		return nil, err
	}
	l.links[link] = true
	return link, link.Set(l.fault)
}

func (l *loadBalancer) leave(link *netfault.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, link)
}

// become does to the connections of clients what the end of a process, or a pause, would do.
func (l *loadBalancer) become(_ context.Context, phase cluster.Phase, state string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := map[cluster.Phase]netfault.Fault{cluster.Ended: {Mode: netfault.Reset}, cluster.Paused: {Mode: netfault.Cut}}[phase]
	for link := range l.links {
		if err := link.Set(f); err != nil {
			return err
		}
	}
	l.fault, l.phase = f, phase
	l.record(time.Now(), history.Process{Role: history.RoleLoadBalancer, State: state})
	return nil
}

func (l *loadBalancer) Status() cluster.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cluster.Status{Phase: l.phase}
}
