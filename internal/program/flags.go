package program

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	template "github.com/kmsharness/kmsharness/internal/command"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// Given are the flags of a set that were given, but for some, for a process that is to have the same.
func Given(flags *pflag.FlagSet, prefix string, but ...string) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(but, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, prefix+f.Name+"="+value)
		}
	})
	return args
}

// ShellWords are the flags of a set that were given, but for some, as a shell reads them. A credential in them is not shown.
func ShellWords(flags *pflag.FlagSet, but ...string) (words []string) {
	for _, flag := range Given(flags, "--", but...) {
		name, value, _ := strings.Cut(flag, "=")
		if flags.Lookup(name[2:]).Value.Type() == "bool" {
			words = append(words, strings.TrimSuffix(flag, "=true"))
			continue
		}
		words = append(words, name+" "+quoted(template.Redacted(value)))
	}
	return words
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Lines is a progress function that prints lines.
func Lines(w io.Writer) func(string) {
	return func(line string) { fmt.Fprintln(w, line) }
}

// Progress is where a command shows how far it is: nowhere with --quiet, or if a program reads what it prints.
func Progress(cmd *cobra.Command, output *printer.Output) io.Writer {
	if quiet, _ := cmd.Flags().GetBool("quiet"); quiet || output.Structured() {
		return io.Discard
	}
	return cmd.OutOrStdout()
}
