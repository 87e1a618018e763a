package kind

import (
	"bytes"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// joinConfiguration picks the JoinConfiguration out of what kind wrote for a node, and gives it the endpoint of the cluster to
// join.
func joinConfiguration(kubeadm []byte, endpoint string) ([]byte, error) {
	for _, text := range bytes.Split(kubeadm, []byte("\n---")) {
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("configuration of kubeadm: %w", err)
		}
		if document["kind"] != "JoinConfiguration" {
			continue
		}
		discovery, _ := document["discovery"].(map[string]any)
		token, _ := discovery["bootstrapToken"].(map[string]any)
		if token == nil {
			return nil, errors.New("configuration of kubeadm: expected a JoinConfiguration with discovery.bootstrapToken")
		}
		token["apiServerEndpoint"] = endpoint
		return yaml.Marshal(document)
	}
	return nil, errors.New("configuration of kubeadm: expected a JoinConfiguration")
}
