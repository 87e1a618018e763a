package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/printer"
)

func newScenarioFieldsCommand() *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "fields [WORD]",
		Short: "List the fields of scenario files, or print their JSON schema",
		Long: `List every field of a scenario file, or those whose path contains WORD: * if it is required, the meaning, and the values or the type.
With -o json it is the JSON schema. Editors with a YAML language server complete and check a file whose first line is:

  # yaml-language-server: $schema=FILE`,
		Example: "  kmsharness scenario fields\n  kmsharness scenario fields refuse -o wide\n  kmsharness scenario fields -o json > scenario.schema.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := scenario.Schema(fault.Names())
			if err != nil {
				return err
			}
			table, err := fieldTable(schema, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return output.PrintTable(cmd.OutOrStdout(), schema, table)
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}

// fieldTable has the fields of a schema whose path contains a word.
func fieldTable(schema any, word string) (t printer.Table, err error) {
	var root field
	text, err := json.Marshal(schema)
	if err == nil {
		err = json.Unmarshal(text, &root)
	}
	if err != nil {
		return t, fmt.Errorf("fields of scenarios: %w", err)
	}
	t.Columns = []string{"FIELD", "MEANING"}
	root.walk("", func(path string, f field, required bool) {
		if strings.Contains(path, word) {
			t.Rows = append(t.Rows, []string{path + map[bool]string{true: " *"}[required], strings.TrimSpace(f.Description + " (" + f.values() + ")")})
		}
	})
	if len(t.Rows) == 0 {
		return t, usage("no field has %q in its path", word)
	}
	return t, nil
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
