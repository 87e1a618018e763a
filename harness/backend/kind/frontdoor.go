package kind

import (
	"context"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

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
