package operand

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// identity is what an EncryptionConfiguration calls the provider of clear text.
const identity = "identity"

// WritingClearText is a file that an operator has made, with clear text as its first provider: whoever loads it writes clear text, and reads
// what it read before.
func WritingClearText(text []byte) ([]byte, error) {
	var whole map[string]any
	if err := yaml.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("read the encryption configuration: %w", err)
	}
	resources, _ := whole["resources"].([]any)
	for _, r := range resources {
		one, _ := r.(map[string]any)
		providers, _ := one["providers"].([]any)
		at := slices.IndexFunc(providers, isClearText)
		if at < 0 {
			return nil, errors.New("read the encryption configuration: expected that every list of providers has identity")
		}
		one["providers"] = append([]any{providers[at]}, slices.Delete(slices.Clone(providers), at, at+1)...)
	}
	if len(resources) == 0 {
		return nil, errors.New("read the encryption configuration: expected resources")
	}
	return yaml.Marshal(whole)
}

func isClearText(provider any) bool {
	one, _ := provider.(map[string]any)
	_, is := one[identity]
	return is
}
