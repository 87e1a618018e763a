package kind

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// placeholders are containers of the node image that sleep. They bear the cluster's label, so whoever deletes the cluster deletes
// them.
type placeholders struct{ cluster, image, network string }

var _ holder = placeholders{}

// networkOf is the network of a container.
func networkOf(ctx context.Context, container string) (string, error) {
	name, err := docker(ctx, "inspect", "--format", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}", container)
	if err == nil && len(strings.Fields(name)) != 1 {
		err = fmt.Errorf("container %s is on the networks %q, expected one", container, name)
	}
	return strings.TrimSpace(name), err
}

func (h placeholders) hold(ctx context.Context) (string, netip.Addr, error) {
	id, err := docker(ctx, "run", "--detach", "--network", h.network, "--label", "io.x-k8s.kind.cluster="+h.cluster, "--entrypoint", "sleep", h.image, "infinity")
	if err != nil {
		return "", netip.Addr{}, err
	}
	text, err := addressOf(ctx, id)
	if err != nil {
		return "", netip.Addr{}, err
	}
	at, err := netip.ParseAddr(text)
	return id, at, err
}

func (h placeholders) drop(ctx context.Context, id string) error {
	return removeContainer(ctx, id)
}
