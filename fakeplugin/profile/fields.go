package profile

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mapping gives the values of a mapping by name. A field that is not known or is missing is a mistake.
func (r *reader) mapping(n *yaml.Node, what string, required []string, optional ...string) map[string]*yaml.Node {
	values := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		r.add(n.Line, "%s is no mapping, expected the fields %s", what, strings.Join(append(slices.Clone(required), optional...), ", "))
		return values
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, known := n.Content[i], append(slices.Clone(required), optional...)
		if !slices.Contains(known, key.Value) {
			r.add(key.Line, "unknown field %.64q in %s, expected %s", key.Value, what, strings.Join(known, ", "))
			continue
		}
		values[key.Value] = n.Content[i+1]
	}
	for _, name := range required {
		if values[name] == nil {
			r.add(n.Line, "field %q is missing in %s", name, what)
		}
	}
	return values
}

// text is a text that is not empty and not too long; one that is not there is empty.
func (r *reader) text(n *yaml.Node, what string, most int) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		r.add(n.Line, "%s is %.64q, expected a text", what, n.Value)
	case strings.TrimSpace(n.Value) == "" || len(n.Value) > most:
		r.add(n.Line, "%s has %d bytes, expected 1 to %d", what, len(n.Value), most)
	default:
		return n.Value
	}
	return ""
}

func (r *reader) bool(n *yaml.Node, what string) bool {
	var b bool
	if n == nil {
		return false
	}
	if n.ShortTag() != "!!bool" || n.Decode(&b) != nil {
		r.add(n.Line, "%s is %.64q, expected true or false", what, n.Value)
	}
	return b
}

func (r *reader) duration(n *yaml.Node, what string, most time.Duration) time.Duration {
	if n == nil {
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > most {
		r.add(n.Line, "%s is %.64q, expected a duration such as 15ms, from 0s to %v", what, n.Value, most)
		return 0
	}
	return d
}
