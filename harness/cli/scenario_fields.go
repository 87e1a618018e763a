package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/swaggest/jsonschema-go"

	"github.com/kmsharness/kmsharness/harness/scenario/explain"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/printer"
)

func newScenarioFieldsCommand(x standard.Extensions) *cobra.Command {
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
			schema, err := schemaOf(x)
			if err != nil {
				return err
			}
			word := strings.Join(args, "")
			rows, err := explain.Fields(schema, word)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				return usage("no field has %q in its path", word)
			}
			return output.PrintTable(cmd.OutOrStdout(), schema, printer.Table{Columns: []string{"FIELD", "MEANING"}, Rows: rows})
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}

// schemaOf is the JSON schema of scenario files, with what another module adds.
func schemaOf(x standard.Extensions) (jsonschema.Schema, error) {
	parser, err := x.Parser()
	if err != nil {
		return jsonschema.Schema{}, err
	}
	return parser.Schema()
}
