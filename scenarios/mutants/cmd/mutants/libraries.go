package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kmsharness/kmsharness/scenarios/mutants/library"
)

// libraryBackend selects the mutants of libraries, which need the source and no backend.
const libraryBackend = "library"

// libraries are the mutants of libraries that were asked for.
func (f flags) libraries() ([]library.Mutant, error) {
	if f.backend != "auto" && f.backend != libraryBackend {
		return nil, nil
	}
	if f.name == "" {
		return library.All(), nil
	}
	if f.onlyLibrary() {
		return slices.DeleteFunc(library.All(), func(m library.Mutant) bool { return m.Name != f.name }), nil
	}
	if f.backend == libraryBackend {
		return nil, fmt.Errorf("there is no mutant %q for --backend %s", f.name, libraryBackend)
	}
	return nil, nil
}

// onlyLibrary reports whether the name that was asked for is that of a library's mutant.
func (f flags) onlyLibrary() bool {
	return slices.ContainsFunc(library.All(), func(m library.Mutant) bool { return m.Name == f.name })
}

// judgeLibraries runs the test of each mutant, prints a table, and returns the exit code.
func judgeLibraries(ctx context.Context, all []library.Mutant, stdout, stderr io.Writer) int {
	root, err := os.Getwd()
	if err != nil {
		return usage(stderr, err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return usage(stderr, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LIBRARY\tCAUGHT BY\tTIME\tMISTAKE")
	killed, survived := 0, ""
	for n, m := range all {
		if ctx.Err() != nil {
			break
		}
		o := m.Try(ctx, root, dir)
		fmt.Fprintf(stderr, "%d of %d: %s in %v\n", n+1, len(all), o.Name, o.Took.Round(time.Millisecond))
		by := o.Test
		if o.Survived == "" {
			killed++
		} else {
			by = "SURVIVED"
			survived += fmt.Sprintf("\n%s survived: %s\n", o.Name, o.Survived)
		}
		fmt.Fprintf(t, "%s\t%s\t%v\t%s\n", o.Name, by, o.Took.Round(time.Millisecond), o.Mistake)
	}
	if err := t.Flush(); err != nil {
		return usage(stderr, err)
	}
	fmt.Fprintf(stdout, "%s\nkilled %d of %d mutants of libraries\n", survived, killed, len(all))
	if killed != len(all) {
		return exitSurvivor
	}
	return 0
}
