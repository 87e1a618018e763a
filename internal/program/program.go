// Package program runs the programs that have commands. All of them treat mistyped commands and flags, help and the version alike.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/internal/printer"
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
	root.AddCommand(newVersionCommand(root.Name()), newCompletionCommand(root))
	root.CompletionOptions.DisableDefaultCmd = true // it would be five commands
	root.InitDefaultHelpCmd()
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", printer.Width)))
	prepare(root)
	return root.ExecuteContext(ctx)
}

// prepare wraps the description of a command and of all below it, and makes an error about its arguments name its help.
func prepare(cmd *cobra.Command) {
	cmd.Long = wrapped(cmd.Long)
	refuseUnknown(cmd)
	if check := cmd.Args; check != nil && cmd.Name() != "help" && !cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}

// wrapped is a text whose paragraphs are filled again. Lines that begin with a space stay as they are.
func wrapped(text string) string {
	var out []string
	line := ""
	flush := func() {
		if line != "" {
			out = append(out, line)
		}
		line = ""
	}
	for given := range strings.SplitSeq(text, "\n") {
		if given == "" || strings.HasPrefix(given, " ") {
			flush()
			out = append(out, given)
			continue
		}
		for word := range strings.FieldsSeq(given) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > printer.Width {
				flush()
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// newCompletionCommand prints the script that makes a shell complete commands, flags and values.
func newCompletionCommand(root *cobra.Command) *cobra.Command {
	shells := map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	}
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script for " + strings.Join(names, ", "),
		Example:   "  source <(" + root.Name() + " completion bash)",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		RunE:      func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.OutOrStdout()) },
	}
}

// Versioned adds the flag --version.
func Versioned(root *cobra.Command) {
	root.Version = version.Read().Line(root.Name())
	root.SetVersionTemplate("{{.Version}}")
	root.Flags().Bool("version", false, "print the version")
}

// refuseUnknown makes a group of commands, and help, refuse a name that is none of its commands. Cobra does this at the root only, and prints the
// help of a group instead, as if that had been asked for.
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
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return fmt.Errorf("%w%s: see %s --help", err, suggest.DidYouMean("--"+unknown.GetSpecifiedName(), names), cmd.CommandPath())
}

func newVersionCommand(program string) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program, and the release of Kubernetes that it supports",
		Example: "  " + program + " version\n  " + program + " version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return output.Print(cmd.OutOrStdout(), version.Read(), func(w io.Writer) error {
				_, err := fmt.Fprint(w, version.Read().Line(program))
				return err
			})
		},
	}
	output = printer.AddFlag(cmd)
	return cmd
}
