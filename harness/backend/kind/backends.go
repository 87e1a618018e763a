package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

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
