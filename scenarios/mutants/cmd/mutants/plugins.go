package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
)

// pluginBackend selects the mutants of the conformance suite for plugins, which need no backend.
const pluginBackend = "plugin"

// plugins are the mutants of the conformance suite that were asked for.
func (f flags) plugins() ([]kmsplugin.Mutant, error) {
	if f.backend != "auto" && f.backend != pluginBackend {
		return nil, nil
	}
	if f.name == "" {
		return kmsplugin.All(), nil
	}
	if m, ok := kmsplugin.Find(f.name); ok {
		return []kmsplugin.Mutant{m}, nil
	}
	if f.backend == pluginBackend {
		return nil, fmt.Errorf("there is no mutant %q for --backend %s", f.name, pluginBackend)
	}
	return nil, nil
}

// onlyPlugin reports whether the name that was asked for is that of a plugin.
func (f flags) onlyPlugin(plugins []kmsplugin.Mutant) bool { return f.name != "" && len(plugins) > 0 }

// judgePlugins runs the whole suite on each plugin, prints a table, and returns the exit code.
func (f flags) judgePlugins(ctx context.Context, plugins []kmsplugin.Mutant, stdout, stderr io.Writer) int {
	program, err := filepath.Abs(filepath.Join(f.programs, "mutant-plugin"))
	if err != nil {
		return usage(stderr, err)
	}
	done := 0
	outcomes := kmsplugin.JudgeAll(ctx, plugins, "'"+program+"'", func(o kmsplugin.Outcome) {
		done++
		fmt.Fprintf(stderr, "%d of %d: %s in %v\n", done, len(plugins), o.Name, o.Took.Round(time.Millisecond))
	})
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PLUGIN\tCAUGHT BY\tTIME\tMISTAKE")
	killed := 0
	for _, o := range outcomes {
		by := o.Caught
		if o.Survived == "" {
			killed++
		} else {
			by = "SURVIVED"
		}
		fmt.Fprintf(t, "%s\t%s\t%v\t%s\n", o.Name, by, o.Took.Round(time.Millisecond), o.Mistake)
	}
	if err := t.Flush(); err != nil {
		return usage(stderr, err)
	}
	for _, o := range outcomes {
		if o.Survived != "" {
			fmt.Fprintf(stdout, "\n%s survived: %s\n", o.Name, o.Survived)
		}
	}
	fmt.Fprintf(stdout, "\nkilled %d of %d plugins\n", killed, len(outcomes))
	if killed != len(outcomes) {
		return exitSurvivor
	}
	return 0
}
