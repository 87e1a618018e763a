package undertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/internal/choice"
)

// Flags are --system FILE and a flag for each field of a System with the tag usage.
type Flags struct {
	*pflag.FlagSet
	name   string // of the file
	file   file
	system System
}

// AddFlags adds the flags of some programs (reporter, …) to a command; of all, if none is named.
func AddFlags(cmd *cobra.Command, programs ...string) *Flags {
	f := &Flags{FlagSet: pflag.NewFlagSet("system", pflag.ContinueOnError)}
	cmd.Flags().StringVar(&f.name, "system", "", "file that describes the system under test (docs/reporter.md); flags override it")
	names := []string{"system"}
	if slices.Equal(programs, []string{"plugin"}) {
		names = append(names, "manifest")
		cmd.Flags().StringVar(&f.name, "manifest", "", "the same as --system: a file of the plugin's repository that describes it (docs/plugin.md)")
	}
	for _, field := range f.system.fields() {
		usage := field.Tag.Get("usage")
		program, _, _ := strings.Cut(field.path, ".")
		if usage == "" || len(programs) > 0 && !slices.Contains(programs, program) {
			continue
		}
		name := flagOf(field.path)
		names = append(names, name)
		switch at := field.value.Addr().Interface().(type) {
		case *int:
			cmd.Flags().IntVar(at, name, 0, usage)
		case *string:
			if of := field.enum(); of != nil {
				choice.Add(cmd, at, name, "", "", usage, of...)
			} else {
				cmd.Flags().StringVar(at, name, "", usage)
			}
		}
	}
	for _, name := range names {
		f.AddFlag(cmd.Flags().Lookup(name))
	}
	return f
}

// flagOf is the flag of a field.
func flagOf(path string) string { return strings.ReplaceAll(path, ".", "-") }

// System is that of the file, with what other flags change. It is not validated.
func (f *Flags) System() (System, error) {
	if f.name == "" {
		return f.system, nil
	}
	given := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			given[flag.Name] = flag.Value.String()
		}
	})
	var err error
	if f.file, f.system, err = read(f.name); err != nil {
		name := "system"
		if _, ok := given["manifest"]; ok {
			name = "manifest"
		}
		return System{}, fmt.Errorf("--%s %w", name, err)
	}
	for name, value := range given { // the file has overwritten the values
		if err := f.Lookup(name).Value.Set(value); err != nil {
			return System{}, err
		}
	}
	return f.system, nil
}

// Explain names the flag or the place in the file to which a FieldError is due.
func (f *Flags) Explain(err error) error {
	var wrong *FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	if f.Changed(flagOf(wrong.Field)) {
		return fmt.Errorf("--%s: %w", flagOf(wrong.Field), wrong.Err)
	}
	return f.file.at(wrong)
}
