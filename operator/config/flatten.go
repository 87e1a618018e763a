package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// flatten makes paths of nested objects: {"a": {"b": "x"}} is a.b = x. Values are texts; an empty one is as good as none.
func flatten(section json.RawMessage) (map[string]string, error) {
	var object map[string]any
	if err := json.Unmarshal(section, &object); err != nil {
		return nil, fmt.Errorf("expected a JSON object: %w", err)
	}
	out := map[string]string{}
	return out, flattenInto(out, "", object)
}

func flattenInto(out map[string]string, prefix string, object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) { // so that of two mistakes the same one is told every time
		path := prefix + key
		switch v := object[key].(type) {
		case map[string]any:
			if err := flattenInto(out, path+".", v); err != nil {
				return err
			}
		case string:
			if v != "" {
				out[path] = v
			}
		case nil:
		default:
			return fmt.Errorf("%s: expected a text, got %v", path, v)
		}
	}
	return nil
}
