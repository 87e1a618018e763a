package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

func newMergeCommand() *cobra.Command {
	var out string
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "merge DIR|FILE...",
		Short: "Add up the summaries of shards",
		Long: `Read summary.json of every shard, and print what one simulation of all seeds would have printed; the hash of the histories is the
same, too. Shards of different runs, and seeds that stand in two of them, are mistakes. Exit codes: 0 all seeds passed, 1 some did
not, 2 could not merge, or seeds are missing.`,
		Example: `  kmsharness simulate merge shard-*
  kmsharness simulate merge shard-*.json --out merged`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return merge(cmd, args, out, output) },
	}
	output = printer.AddFlag(cmd)
	cmd.Flags().StringVar(&out, "out", "", "folder for the summary of all; none: it is only printed")
	return cmd
}

func merge(cmd *cobra.Command, paths []string, out string, output *printer.Output) error {
	var shards []*swarm.Summary
	for _, path := range paths {
		s, err := swarm.Load(path)
		if err != nil {
			return err
		}
		shards = append(shards, s)
	}
	all, err := swarm.Merge(shards)
	if err != nil {
		return err
	}
	if out != "" {
		unlock, err := outdir.Prepare(cmd.CommandPath(), out)
		if err != nil {
			return err
		}
		defer unlock()
		if err := all.Save(out); err != nil {
			return err
		}
	}
	if err := output.Print(cmd.OutOrStdout(), all, all.Write); err != nil {
		return err
	}
	switch {
	case len(all.Failed) > 0:
		return program.Failed()
	case len(all.Missing()) > 0:
		return fmt.Errorf("merge: not every seed of %v was simulated: run the missing shards, and merge again", all.Wanted)
	}
	return nil
}
