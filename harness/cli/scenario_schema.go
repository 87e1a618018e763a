package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func newScenarioSchemaCommand(x standard.Extensions) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of scenario files, for editors",
		Long:    "Editors with a YAML language server complete and check a file whose first line is:\n\n  # yaml-language-server: $schema=FILE",
		Example: "  kmsharness scenario schema > scenario.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return printSchema(x, cmd.OutOrStdout()) },
	}
}

func printSchema(x standard.Extensions, w io.Writer) error {
	parser, err := x.Parser()
	if err != nil {
		return err
	}
	s, err := parser.Schema()
	if err != nil {
		return err
	}
	return printJSON(w, s)
}
