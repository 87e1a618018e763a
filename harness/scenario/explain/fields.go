package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields are the paths of the fields of a JSON schema that contain a word, each with its meaning. A required field has a * after its path.
func Fields(schema any, word string) (rows [][]string, err error) {
	var root field
	text, err := json.Marshal(schema)
	if err == nil {
		err = json.Unmarshal(text, &root)
	}
	if err != nil {
		return nil, fmt.Errorf("fields of scenarios: %w", err)
	}
	root.walk("", func(path string, f field, required bool) {
		if strings.Contains(path, word) {
			rows = append(rows, []string{path + map[bool]string{true: " *"}[required], strings.TrimSpace(f.Description + " (" + f.values() + ")")})
		}
	})
	return rows, nil
}

// field is what of a JSON schema is listed.
type field struct {
	Type        any // a string or a list of them
	Description string
	Ref         string `json:"$ref"`
	Enum        []any
	Required    []string
	Properties  map[string]field
	Items       *field
	AnyOf       []field
	Definitions map[string]field
}

// walk visits the fields below path, in the order of their names. Those of all verbs are below steps; what several verbs have is visited once.
func (f field) walk(path string, visit func(path string, f field, required bool)) {
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		below := f.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		visit(at, below, slices.Contains(f.Required, name))
		below.walk(at, visit)
		if below.Items != nil {
			below.Items.walk(at+"[]", visit)
		}
	}
	seen := map[string]bool{}
	for _, verb := range f.Definitions["step"].AnyOf {
		verb.walk("steps[]", func(path string, f field, required bool) {
			if !seen[path] {
				visit(path, f, required && strings.Count(path, ".") > 1)
			}
			seen[path] = true
		})
	}
}

// values are the words that a field accepts, or its type.
func (f field) values() string {
	var words []string
	for _, value := range f.Enum {
		if word := fmt.Sprint(value); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	var types string
	switch t := f.Type.(type) {
	case string:
		types = t
	case []any:
		types = strings.Trim(strings.ReplaceAll(fmt.Sprint(t), " ", " or "), "[]")
	}
	return cmp.Or(strings.Join(words, ", "), types, strings.TrimPrefix(f.Ref, "#/definitions/"), "one of several types")
}
