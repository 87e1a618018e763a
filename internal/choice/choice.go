// Package choice has flags that take one of some values.
package choice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// value is a pflag.Value.
type value struct {
	at *string
	of []string
}

func (v value) String() string { return *v.at }

func (v value) Type() string { return "string" }

func (v value) Set(text string) error {
	if !slices.Contains(v.of, text) {
		return fmt.Errorf("expected %s%s", Or(v.of), suggest.DidYouMean(text, v.of))
	}
	*v.at = text
	return nil
}

// Add adds a flag to a command, whose values shells complete. The default need not be one of the values: it may be empty.
func Add(cmd *cobra.Command, at *string, name, shorthand, byDefault, usage string, of ...string) {
	*at = byDefault
	cmd.Flags().VarP(value{at, of}, name, shorthand, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)) // it exists
}

// Or is "a", "a or b", "a, b or c".
func Or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
