package testsext

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/junit"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

const name = "kmsharness-tests-ext"

// Main is the program kmsharness-tests-ext. It returns the exit code. A program that has it must begin with bubble.Main.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{Use: name, Short: "kmsharness as an extension of openshift-tests"}
	root.PersistentFlags().String("component", "default", "there is one")
	root.AddCommand(newPrint("info", "Describe the extension", describe()), newList(), newRunTest(), newRunSuite(), newPrint("images", "List the images that tests need", describe().Images))
	return program.Exit(stderr, name, program.Execute(ctx, root, args, stdout, stderr))
}

// newPrint is a command that prints a value.
func newPrint(use, short string, value any) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return printer.WriteJSON(cmd.OutOrStdout(), value)
	}}
}

func newList() *cobra.Command {
	var output, of string
	tests := func(cmd *cobra.Command, _ []string) error {
		all, err := specs()
		if err == nil && of != "" {
			err = known(of)
		}
		if err != nil {
			return err
		}
		return printList(cmd.OutOrStdout(), output, all, func(s spec) string { return s.Name })
	}
	suites := func(cmd *cobra.Command, _ []string) error {
		return printList(cmd.OutOrStdout(), output, describe().Suites, func(s suite) string { return s.Name })
	}
	components := func(cmd *cobra.Command, _ []string) error {
		return printList(cmd.OutOrStdout(), output, []component{self()}, component.String)
	}
	list := func(use, short string, run func(*cobra.Command, []string) error) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: run}
		choice.Add(cmd, &output, "output", "o", "json", "json, jsonl or names", "json", "jsonl", "names")
		return cmd
	}
	cmd := list("list", "List tests, suites or components", tests)
	flags := cmd.PersistentFlags()
	flags.StringVar(&of, "suite", "", "tests of a suite")
	for _, what := range []string{"architecture", "external-connectivity", "network", "network-stack", "platform", "topology", "upgrade", "version"} {
		flags.String(what, "", "of the cluster; no test depends on it")
	}
	for _, what := range []string{"api-group", "fact", "feature-gate", "optional-capability"} {
		flags.StringArray(what, nil, "of the cluster; no test depends on it")
	}
	cmd.AddCommand(list("tests", "List tests", tests), list("suites", "List suites", suites), list("components", "List components", components))
	return cmd
}

func newRunTest() *cobra.Command {
	var output string
	var names []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "run-test [NAME]", Short: "Run tests by name, from flags or from lines of standard input", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if names = append(names, args...); len(names) == 0 {
				lines := bufio.NewScanner(os.Stdin)
				for lines.Scan() {
					names = append(names, lines.Text())
				}
			}
			all, err := specs()
			if err != nil {
				return err
			}
			var chosen []spec
			for _, name := range names {
				i := slices.IndexFunc(all, func(s spec) bool { return s.Name == name })
				if i < 0 {
					return fmt.Errorf("test %q: there is no such test: see list", name)
				}
				chosen = append(chosen, all[i])
			}
			if len(chosen) == 0 {
				return fmt.Errorf("no test: expected -n NAME")
			}
			_, err = runAll(cmd, output, timeout, chosen)
			return err
		},
	}
	addRunFlags(cmd, &output, &timeout)
	cmd.Flags().StringArrayVarP(&names, "names", "n", nil, "name of a test; may be repeated")
	return cmd
}

func newRunSuite() *cobra.Command {
	var output, file string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "run-suite NAME", Short: "Run the tests of a suite, one after another", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := specs()
			if err == nil {
				err = known(args[0])
			}
			if err != nil {
				return err
			}
			results, failure := runAll(cmd, output, timeout, all)
			if file != "" {
				if err := atomicfile.WriteTo(file, func(w io.Writer) error { return writeJUnit(w, args[0], results) }); err != nil {
					return err
				}
			}
			return failure
		},
	}
	addRunFlags(cmd, &output, &timeout)
	cmd.Flags().StringVarP(&file, "junit-path", "j", "", "file for the results as JUnit")
	return cmd
}

func addRunFlags(cmd *cobra.Command, output *string, timeout *time.Duration) {
	choice.Add(cmd, output, "output", "o", "json", "json or jsonl", "json", "jsonl")
	cmd.Flags().DurationVar(timeout, "timeout", 0, "bound of each test; 0: none")
	cmd.Flags().IntP("max-concurrency", "c", 1, "accepted for openshift-tests; a process runs one test at a time")
}

// known is an error for a suite that there is not.
func known(name string) error {
	if name != suiteName {
		return fmt.Errorf("suite %q: expected %s", name, suiteName)
	}
	return nil
}

// runAll runs tests, and prints each result when it is there, or all at the end. The error says how many failed.
func runAll(cmd *cobra.Command, output string, timeout time.Duration, all []spec) (results []result, err error) {
	failures := 0
	for _, s := range all {
		ctx, cancel := cmd.Context(), func() {}
		if timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, timeout)
		}
		r := s.run(ctx)
		cancel()
		if r.Result == failed {
			failures++
		}
		if results = append(results, r); output == "jsonl" {
			if err := printList(cmd.OutOrStdout(), output, []result{r}, nil); err != nil {
				return results, err
			}
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	if output != "jsonl" {
		err = printer.WriteJSON(cmd.OutOrStdout(), results)
	}
	if err == nil && failures > 0 {
		err = &program.ExitError{Code: program.ExitFailed, Text: fmt.Sprintf("%d of %d tests failed", failures, len(all))}
	}
	return results, err
}

// printList prints a list as openshift-tests reads it.
func printList[T any](w io.Writer, output string, all []T, nameOf func(T) string) error {
	if output == "json" {
		return printer.WriteJSON(w, all)
	}
	for _, one := range all {
		var err error
		if output == "names" {
			_, err = fmt.Fprintln(w, nameOf(one))
		} else {
			err = json.NewEncoder(w).Encode(one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeJUnit(w io.Writer, suite string, results []result) error {
	var doc junit.Suites
	for _, r := range results {
		c := junit.Case{Class: suite, Name: r.Name, Time: junit.Seconds(time.Duration(r.Duration) * time.Millisecond)}
		switch r.Result {
		case failed:
			c.Failure = &junit.Problem{Message: r.Error, Text: r.Output}
		case skipped:
			c.Skipped = &junit.Problem{Message: r.Details[0].Value}
		}
		doc.Add(suite, c)
	}
	return doc.Write(w)
}
