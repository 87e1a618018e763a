package kind

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// loadBalancer is the container that kind puts before several API servers. Where there is one node there is none, and its
// part is played by the API server.
type loadBalancer struct {
	cluster.Phases
	container container
	ip        string          // on the nodes' network; empty: there is none
	fronts    bool            // it leads to the fronts of the API servers
	client    *cluster.Client // an administrator's, through it
	record    func(at time.Time, p history.Process)

	mu    sync.Mutex
	phase cluster.Phase
}

var _ cluster.Unit = (*loadBalancer)(nil)

func newLoadBalancer(fronts bool) *loadBalancer {
	l := &loadBalancer{fronts: fronts}
	l.Phases = l.become
	return l
}

// host is its name on the nodes' network, for clients of the in-cluster configuration: the API servers' certificates have it, and not its address.
func (l *loadBalancer) host() string { return string(l.container) }

// become runs the docker command that brings it into a state. While it is paused the kernel goes on accepting connections, and nobody answers.
func (l *loadBalancer) become(ctx context.Context, phase cluster.Phase, state string) error {
	if l.ip == "" {
		return fmt.Errorf("there is no load balancer before a single node")
	}
	args := map[string][]string{
		history.ProcessStarted: {"start"}, history.ProcessStopped: {"stop", "--time", "1"}, history.ProcessKilled: {"kill"},
		history.ProcessPaused: {"pause"}, history.ProcessResumed: {"unpause"},
	}[state]
	if _, err := docker.Run(ctx, append(args, string(l.container))...); err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	l.mu.Lock()
	l.phase = phase
	l.mu.Unlock()
	l.record(time.Now(), history.Process{Role: history.RoleLoadBalancer, State: state})
	return nil
}

// Start implements cluster.Unit.
func (l *loadBalancer) Start(ctx context.Context) error {
	if l.Status().Running() {
		return nil
	}
	if err := l.Phases.Start(ctx); err != nil {
		return err
	}
	return until(ctx, readyPoll, "start the load balancer", asking(l.client, "/livez"))
}

// Status implements cluster.Unit.
func (l *loadBalancer) Status() cluster.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cluster.Status{Phase: l.phase}
}

// clusters is the file in which kind's load balancer finds the API servers. It is read again when another takes its place.
const clusters = "/home/envoy/cds.yaml"

// lead makes the load balancer lead to the API servers in these containers.
func (l *loadBalancer) lead(ctx context.Context, to []container) error {
	if l.ip == "" {
		return nil
	}
	old, err := l.container.read(ctx, clusters)
	if err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	text, err := withBackends(old, l.backendPort(), to)
	if err != nil {
		return fmt.Errorf("load balancer: %s: %w", clusters, err)
	}
	if err := l.container.write(ctx, clusters, clusters+".next", text); err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	return nil
}

// backendPort is the port of the nodes that it leads to.
func (l *loadBalancer) backendPort() string {
	if l.fronts {
		return portFront
	}
	return portAPIServer
}

// serverBehind has a setting a line, as kind writes it: the node image's own load balancer reads no other YAML.
const serverBehind = `      - endpoint:
          address:
            socket_address:
              address: %s
              port_value: %s
`

// withBackends is a file of clusters with other API servers, which stand last in what kind writes; everything before them stays.
func withBackends(text []byte, port string, servers []container) ([]byte, error) {
	const endpoints = "lb_endpoints:"
	settings, _, found := bytes.Cut(text, []byte(endpoints))
	if !found {
		return nil, fmt.Errorf("expected %s as the last of its settings", endpoints)
	}
	out := append(settings, endpoints+"\n"...)
	for _, name := range servers {
		out = fmt.Appendf(out, serverBehind, name, port)
	}
	return out, nil
}
