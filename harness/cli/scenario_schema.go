package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func newScenarioSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of scenario files, for editors",
		Long:    "Editors with a YAML language server complete and check a file whose first line is:\n\n  # yaml-language-server: $schema=FILE",
		Example: "  kmsharness scenario schema > scenario.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return printSchema(cmd.OutOrStdout()) },
	}
}

func printSchema(w io.Writer) error {
	s, err := scenario.Schema(fault.Names())
	if err != nil {
		return err
	}
	return printJSON(w, s)
}
