package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/trace"
	"github.com/kmsharness/kmsharness/harness/trace/otlp"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// traceFlags are what trace may be asked for; one of them, or a uid.
type traceFlags struct {
	object       string
	slowest      int
	uncorrelated bool
	output       *printer.Output
	otlp         string
}

// mostTraced is how many operations are shown where none was asked for.
const mostTraced = 20

func newTraceCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace [RUN] [UID]",
		Short: "Follow envelope operations: API server, plugin, remote KMS",
		Long: `Join what API servers, plugins and the remote KMS told of envelope operations, by the uid that the API server made, and show the chain
of one (UID, or its beginning), of an object, the slowest, or what could not be joined, with the reason. RUN is a scenario's folder or a
history.jsonl; without it, the only run below _artifacts. Without a selection all operations are listed.
Exit codes: 0 shown, 2 not found or not readable.`,
		Example: `  kmsharness trace _artifacts/uid-followed
  kmsharness trace _artifacts/uid-followed 5e3aa1c2
  kmsharness trace _artifacts/uid-followed --object secrets/default/data-1
  kmsharness trace _artifacts/uid-followed --slowest 10
  kmsharness trace _artifacts/uid-followed --uncorrelated -o json
  kmsharness trace _artifacts/uid-followed --otlp-json /tmp/traces.json`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.object, "object", "", "tell of one object, RESOURCE/NAMESPACE/NAME: how it was stored, its requests, its operations")
	flags.IntVar(&f.slowest, "slowest", 0, "list so many operations, those that took longest first")
	flags.BoolVar(&f.uncorrelated, "uncorrelated", false, "list what could not be joined, by reason, and requests that were no envelope operation")
	f.output = printer.AddFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("object", "slowest", "uncorrelated")
	flags.StringVar(&f.otlp, "otlp-json", "", "also write all operations as OpenTelemetry traces (OTLP/JSON) to this file")
	return cmd
}

func (f *traceFlags) run(cmd *cobra.Command, args []string) error {
	run, uid, err := traceArgs(args)
	if err != nil {
		return err
	}
	if err := f.check(cmd, uid); err != nil {
		return err
	}
	events, err := history.ReadFile(run)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	t := trace.Join(events)
	if f.otlp != "" {
		if err := writeOTLP(f.otlp, t); err != nil {
			return err
		}
	}
	if err := f.show(cmd.OutOrStdout(), t, uid); err != nil {
		return fmt.Errorf("trace %s: %w", filepath.ToSlash(run), err)
	}
	return nil
}

// check refuses what cannot be selected.
func (f *traceFlags) check(cmd *cobra.Command, uid string) error {
	slowest := cmd.Flags().Changed("slowest")
	if uid != "" && (f.object != "" || slowest || f.uncorrelated) {
		return fmt.Errorf("trace: choose one of UID, --object, --slowest and --uncorrelated")
	}
	if slowest && f.slowest < 1 {
		return fmt.Errorf("trace: --slowest %d: expected 1 or more", f.slowest)
	}
	return nil
}

// traceArgs tells run and uid apart: what exists is a run.
func traceArgs(args []string) (run, uid string, err error) {
	switch {
	case len(args) == 2:
		run, uid = args[0], args[1]
	case len(args) == 1 && exists(args[0]):
		run = args[0]
	default:
		run = "_artifacts"
		if len(args) == 1 {
			uid = args[0]
		}
		if !exists(run) {
			return "", "", fmt.Errorf("trace: there is no run below %s: name the folder of a run, or its history.jsonl", run)
		}
	}
	run, err = historyOf(run)
	return run, uid, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || path == "-" // standard input
}

// historyOf is the history of a run's folder; a folder of runs must hold exactly one.
func historyOf(path string) (string, error) {
	if path == "-" {
		return path, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("trace: %v: name the folder of a run, or its history.jsonl", err)
	case !info.IsDir():
		return path, nil
	case exists(filepath.Join(path, "history.jsonl")):
		return filepath.Join(path, "history.jsonl"), nil
	}
	below, err := filepath.Glob(filepath.Join(path, "*", "history.jsonl"))
	switch {
	case err != nil || len(below) == 0:
		return "", fmt.Errorf("trace: %s holds no history.jsonl: name the folder of a run", filepath.ToSlash(path))
	case len(below) > 1:
		return "", fmt.Errorf("trace: %s holds %d runs, %s among them: name one", filepath.ToSlash(path), len(below), filepath.ToSlash(filepath.Dir(below[0])))
	}
	return below[0], nil
}

func writeOTLP(path string, t *trace.Trace) error {
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(otlp.Write(file, t), file.Close())
	}
	if err != nil {
		return fmt.Errorf("trace: --otlp-json: %w", err)
	}
	return nil
}

func (f *traceFlags) show(w io.Writer, t *trace.Trace, uid string) error {
	switch {
	case uid != "":
		ops, err := t.Find(uid)
		if err != nil {
			return err
		}
		return f.output.Print(w, ops, func(w io.Writer) error { return trace.PrintChains(w, ops) })
	case f.object != "":
		story, err := t.Object(f.object)
		if err != nil {
			return err
		}
		return f.output.Print(w, story, func(w io.Writer) error { return story.Print(w) })
	case f.slowest > 0:
		ops := t.Slowest(f.slowest)
		return f.output.Print(w, ops, func(w io.Writer) error { return trace.PrintTable(w, ops, 0) })
	case f.uncorrelated:
		return f.output.Print(w, uncorrelated{t.Uncorrelated(), t.Cached()}, func(w io.Writer) error { return t.PrintUncorrelated(w) })
	}
	return f.output.Print(w, t, func(w io.Writer) error {
		if err := t.PrintSummary(w); err != nil {
			return err
		}
		return trace.PrintTable(w, t.Operations, mostTraced)
	})
}

// uncorrelated as JSON.
type uncorrelated struct {
	Operations []trace.Operation `json:"operations"`
	Cached     []trace.Request   `json:"requestsWithoutAnOperation"`
}
