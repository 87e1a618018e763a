package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func newScenarioFieldsCommand(x standard.Extensions) *cobra.Command {
	return &cobra.Command{
		Use:     "fields [WORD]",
		Short:   "List the fields of scenario files: verbs, arguments, values",
		Long:    "List every field of a scenario file, or those whose path contains WORD: * if it is required, the meaning, and the values or the type.",
		Example: "  kmsharness scenario fields\n  kmsharness scenario fields refuse\n  kmsharness scenario fields topology",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var text bytes.Buffer
			if err := printSchema(x, &text); err != nil {
				return err
			}
			var root field
			if err := json.Unmarshal(text.Bytes(), &root); err != nil {
				return fmt.Errorf("fields of scenarios: %w", err)
			}
			word := strings.Join(args, "")
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			found := false
			root.walk("", func(path string, f field, required bool) {
				if strings.Contains(path, word) {
					found = true
					fmt.Fprintf(t, "%s%s\t%s\n", path, map[bool]string{true: " *"}[required], strings.TrimSpace(f.Description+" ("+f.values()+")"))
				}
			})
			if !found {
				return usage("no field has %q in its path", word)
			}
			return t.Flush()
		},
	}
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
