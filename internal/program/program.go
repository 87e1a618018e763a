// Package program runs the programs that have commands. All of them treat mistyped commands and flags, help and the version alike.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/internal/suggest"
	"github.com/kmsharness/kmsharness/internal/version"
)

// Execute runs a program by its arguments. The caller prints the error.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	Versioned(root)
	root.AddCommand(newVersionCommand(root.Name()))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	refuseUnknown(root)
	return root.ExecuteContext(ctx)
}

// Versioned adds the flag --version.
func Versioned(root *cobra.Command) {
	root.Version = version.Read().Line(root.Name())
	root.SetVersionTemplate("{{.Version}}")
	root.Flags().Bool("version", false, "print the version")
}

// refuseUnknown makes each group of commands below cmd, and help, refuse a name that is none of its commands. Cobra does this at the root only, and
// prints the help of a group instead, as if that had been asked for.
func refuseUnknown(cmd *cobra.Command) {
	if cmd.Name() == "help" {
		cmd.Args = func(help *cobra.Command, args []string) error { return checkPath(help.Root(), args) }
	}
	if !cmd.HasSubCommands() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
}

// checkPath fails unless names leads from cmd to a command.
func checkPath(cmd *cobra.Command, names []string) error {
	for _, name := range names {
		next, _, err := cmd.Find([]string{name})
		if err != nil || next == cmd {
			return unknownCommand(cmd, name)
		}
		cmd = next
	}
	return nil
}

func unknownCommand(cmd *cobra.Command, got string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	hint := suggest.DidYouMean(got, names)
	if hint == "" {
		hint = ", expected " + strings.Join(names, ", ")
	}
	return fmt.Errorf("unknown command %q for %q%s", got, cmd.CommandPath(), hint)
}

// flagError blames an unknown command before a flag that only the intended command has.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("%w%s", err, suggest.DidYouMean("--"+unknown.GetSpecifiedName(), names))
}

func newVersionCommand(program string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program, and the release of Kubernetes that it supports",
		Example: "  " + program + " version\n  " + program + " version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch output {
			case "text":
				_, err := fmt.Fprint(cmd.OutOrStdout(), version.Read().Line(program))
				return err
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(version.Read())
			}
			return fmt.Errorf("--output %q: expected text or json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}
