package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/report/page"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// Written says what was written, and what it says.
type Written struct {
	Page, Markdown string
	// Summary, Coverage and Machine are also there if a file could not be written.
	Summary  report.Summary
	Coverage string
	Machine  report.Machine
}

// Options of Write.
type Options struct {
	// Dirs are the output folders of runs, each of one backend; Out gets the files.
	Dirs []string
	Out  string
	// JUnit also writes junit.xml, if there is one backend: names of test cases do not tell backends apart.
	JUnit bool
	// Statements are the ids of all statements of the sources that are known, for what was not exercised.
	Statements []string
	// Took is the time of all together; zero: from the first beginning to the last end.
	Took time.Duration
}

// Write reads the runs below the folders and writes their report. Histories are read one after another, and only what is shown of
// each is kept.
func Write(o Options) (Written, error) {
	var runs []page.Run
	for _, dir := range o.Dirs {
		below, err := folders(dir)
		if err != nil {
			return Written{}, err
		}
		for _, sub := range below {
			r := load(sub, o.Out)
			r.Column = dir // until it is known which backends there are
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return Written{}, fmt.Errorf("no run in %s, expected folders with a %s", strings.Join(o.Dirs, ", "), result.HistoryFile)
	}
	columns(runs)
	slices.SortStableFunc(runs, func(a, b page.Run) int {
		return cmp.Or(cmp.Compare(a.Result.Area, b.Result.Area), cmp.Compare(a.Result.Scenario, b.Result.Scenario))
	})
	return write(o, runs)
}

// columns names the column of each run: its backend, and the folder if it is not the only one with that backend.
func columns(runs []page.Run) {
	dirs := map[string][]string{} // by backend
	for _, r := range runs {
		if !slices.Contains(dirs[r.Result.Backend], r.Column) {
			dirs[r.Result.Backend] = append(dirs[r.Result.Backend], r.Column)
		}
	}
	for i := range runs {
		dir := runs[i].Column
		runs[i].Column = cmp.Or(runs[i].Result.Backend, "no backend")
		if len(dirs[runs[i].Result.Backend]) > 1 {
			runs[i].Column += " " + filepath.ToSlash(filepath.Clean(dir))
		}
	}
}

func write(o Options, runs []page.Run) (Written, error) {
	out := Written{Page: filepath.Join(o.Out, result.PageFile), Markdown: filepath.Join(o.Out, result.MarkdownFile), Summary: summary(runs)}
	if o.Took > 0 {
		out.Summary.Took = o.Took
	}
	p := page.Page{Runs: runs, Counts: out.Summary.Counts(), Coverage: report.CoverageOf(verdicts(runs))}
	out.Coverage = p.Coverage
	out.Machine = report.NewMachine(out.Summary, p.Coverage, machineRuns(o.Out, runs), o.Statements)
	markdown := func(w io.Writer) error {
		_, err := io.WriteString(w, out.Summary.Markdown(p.Coverage))
		return err
	}
	forPrograms := filepath.Join(o.Out, result.SummaryFile)
	if err := errors.Join(atomicfile.WriteTo(out.Page, p.Write), atomicfile.WriteTo(out.Markdown, markdown), atomicfile.WriteTo(forPrograms, out.Machine.Write)); err != nil {
		return out, err
	}
	if o.JUnit && len(p.Columns()) <= 1 {
		return out, out.Summary.SaveJUnit(o.Out)
	}
	return out, nil
}

// summary is the results of all runs, each under the name of its column.
func summary(runs []page.Run) report.Summary {
	var s report.Summary
	for _, r := range runs {
		r.Result.Backend = r.Column
		s.Results = append(s.Results, r.Result)
	}
	s.Took = s.Span()
	return s
}

func verdicts(runs []page.Run) (all []check.Verdict) {
	for _, r := range runs {
		if r.Verdict != nil {
			all = append(all, *r.Verdict)
		}
	}
	return all
}

func machineRuns(out string, runs []page.Run) []report.MachineRun {
	all := []report.MachineRun{}
	for _, r := range runs {
		m := report.MachineRun{Column: r.Column, Result: r.Result, Page: result.PageFile + "#" + r.ID()}
		if r.Packed != "" {
			m.History = link(out, filepath.Join(r.Result.Dir, result.HistoryFile))
		}
		if r.Verdict != nil {
			m.Detection, m.Recovery, m.Invariants = &r.Verdict.Detection, &r.Verdict.Recovery, map[string]check.Status{}
			for _, i := range r.Verdict.Invariants {
				m.Invariants[i.ID] = i.Status
			}
		}
		all = append(all, m)
	}
	return all
}
