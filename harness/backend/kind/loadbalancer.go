package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// loadBalancer is the container that kind puts before several API servers. Where there is one node there is none, and its
// part is played by the API server.
type loadBalancer struct {
	container string
	ip        string // on the nodes' network; empty: there is none
	url       string // on this machine
	http      *http.Client
	tell      func(at time.Time, p history.Process)

	mu    sync.Mutex
	phase live.Phase
}

var _ live.Unit = (*loadBalancer)(nil)

func (l *loadBalancer) do(ctx context.Context, phase live.Phase, state string, args ...string) error {
	if l.ip == "" {
		return fmt.Errorf("there is no load balancer before a single node")
	}
	if _, err := docker(ctx, append(args, l.container)...); err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	l.mu.Lock()
	l.phase = phase
	l.mu.Unlock()
	l.tell(time.Now(), history.Process{Role: history.RoleLoadBalancer, State: state})
	return nil
}

// Start implements live.Unit.
func (l *loadBalancer) Start(ctx context.Context) error {
	if l.Status().Lives() {
		return nil
	}
	if err := l.do(ctx, live.Running, history.ProcessStarted, "start"); err != nil {
		return err
	}
	return until(ctx, readyPoll, "start the load balancer", (&server{url: l.url, http: l.http}).ask("/livez"))
}

// Stop implements live.Unit.
func (l *loadBalancer) Stop(ctx context.Context) error {
	return l.do(ctx, live.Ended, history.ProcessStopped, "stop", "--time", "1")
}

// Kill implements live.Unit.
func (l *loadBalancer) Kill(ctx context.Context) error {
	return l.do(ctx, live.Ended, history.ProcessKilled, "kill")
}

// Pause implements live.Unit: the kernel goes on accepting connections, and nobody answers.
func (l *loadBalancer) Pause(ctx context.Context) error {
	return l.do(ctx, live.Paused, history.ProcessPaused, "pause")
}

// Resume implements live.Unit.
func (l *loadBalancer) Resume(ctx context.Context) error {
	return l.do(ctx, live.Running, history.ProcessResumed, "unpause")
}

// Status implements live.Unit.
func (l *loadBalancer) Status() live.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return live.Status{Phase: l.phase}
}

// findLoadBalancer finds kind's, or takes the single node for it.
func (p *plane) findLoadBalancer(ctx context.Context, names []string) error {
	p.lb = &loadBalancer{container: p.container(names[0]), tell: p.Tell, phase: live.Running}
	if len(names) > 1 {
		p.lb.container = p.cluster + "-external-load-balancer"
		ip, err := addressOf(ctx, p.lb.container)
		if err != nil {
			return err
		}
		p.lb.ip = ip
	}
	published, err := publishedAt(ctx, p.lb.container)
	if err != nil {
		return err
	}
	p.lb.url = "https://" + published
	if p.lb.http, err = p.adminHTTP(p.lb.url); err != nil {
		return err
	}
	p.front, err = netfault.NewLink("clients to the load balancer", published)
	return err
}

// addressOf is a container's address on the nodes' network.
func addressOf(ctx context.Context, container string) (string, error) {
	ip, err := docker(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container)
	if err == nil && ip == "" {
		err = fmt.Errorf("container %s has no address", container)
	}
	return ip, err
}

// publishedAt is where the API server of a container is on this machine, host:port.
func publishedAt(ctx context.Context, container string) (string, error) {
	at, err := docker(ctx, "port", container, portAPIServer+"/tcp")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(at, "\n")
	return first, nil
}

// clusters is the file in which kind's load balancer finds the API servers. It is read again when another takes its place.
const clusters = "/home/envoy/cds.yaml"

// change gives the load balancer other API servers, by the names of their containers.
func (l *loadBalancer) change(ctx context.Context, other func([]string) []string) error {
	if l.ip == "" {
		return nil
	}
	old, err := inside(ctx, l.container, nil, "cat", clusters)
	if err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	text, err := withBackends([]byte(old), other)
	if err != nil {
		return fmt.Errorf("load balancer: %s: %w", clusters, err)
	}
	const next = clusters + ".next"
	if _, err := inside(ctx, l.container, bytes.NewReader(text), "sh", "-c", "cat > "+next+" && mv "+next+" "+clusters); err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	return nil
}

// withBackends is a file of clusters with other API servers; everything else stays as kind wrote it.
func withBackends(text []byte, other func([]string) []string) ([]byte, error) {
	var file struct {
		Resources []map[string]any `json:"resources"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if len(file.Resources) != 1 {
		return nil, fmt.Errorf("%d resources, expected one", len(file.Resources))
	}
	group, err := endpointsOf(file.Resources[0])
	if err != nil {
		return nil, err
	}
	var names []string
	endpoints, _ := group["lb_endpoints"].([]any)
	for _, e := range endpoints {
		names = append(names, addressIn(e))
	}
	var changed []any
	for _, name := range other(slices.Clone(names)) {
		changed = append(changed, endpointAt(name))
	}
	group["lb_endpoints"] = changed
	return yaml.Marshal(file)
}

// endpointsOf is the only group of endpoints of a cluster.
func endpointsOf(cluster map[string]any) (map[string]any, error) {
	assignment, _ := cluster["load_assignment"].(map[string]any)
	groups, _ := assignment["endpoints"].([]any)
	if len(groups) != 1 {
		return nil, errors.New("expected load_assignment with one group of endpoints")
	}
	group, ok := groups[0].(map[string]any)
	if !ok {
		return nil, errors.New("expected a group of endpoints")
	}
	return group, nil
}

func addressIn(endpoint any) string {
	at := endpoint
	for _, field := range []string{"endpoint", "address", "socket_address", "address"} {
		next, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = next[field]
	}
	name, _ := at.(string)
	return name
}

func endpointAt(name string) any {
	const port = 6443
	return map[string]any{"endpoint": map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": name, "port_value": port}}}}
}
