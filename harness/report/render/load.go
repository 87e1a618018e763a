package render

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/page"
	"github.com/kmsharness/kmsharness/harness/result"
)

// MaxEvents is how many events of one run a page shows one by one.
const MaxEvents = 10000

// folders are those below dir that a run left, or dir itself.
func folders(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s: expected the output folder of a run", dir)
	}
	if isRun(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var all []string
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); e.IsDir() && isRun(sub) {
			all = append(all, sub)
		}
	}
	return all, nil
}

func isRun(dir string) bool {
	return slices.ContainsFunc([]string{result.HistoryFile, result.ResultFile}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// load reads one run. The history is always judged again: what the page says is what this program finds. Only what no history can tell
// is taken from the result that was saved, if there is one. A run that cannot be read takes no other with it.
func load(dir, out string) page.Run {
	saved, err := result.ReadResult(filepath.Join(dir, result.ResultFile))
	known := err == nil
	r := page.Run{Result: saved, Files: files(dir, out)}
	r.Result.Dir = dir
	var events []history.Event
	if known || errors.Is(err, fs.ErrNotExist) {
		events, err = history.ReadFile(filepath.Join(dir, result.HistoryFile))
	} else { // one damaged file must not cost the report of the others
		r.Warnings = append(r.Warnings, "The saved result is not used: "+err.Error())
	}
	switch {
	case err == nil:
		return judge(r, events, known)
	case known && !saved.Status.Judged():
	case known:
		r.Warnings = append(r.Warnings, "There is no timeline: "+err.Error())
	default:
		r.Result.Scenario, r.Result.Status, r.Result.Reasons = filepath.Base(dir), result.CouldNotRun, []string{err.Error()}
	}
	return r
}

// judge judges a history and draws its timeline.
func judge(r page.Run, events []history.Event, known bool) page.Run {
	verdict := check.Run(events)
	fresh := ofHistory(events)
	fresh.Judge(verdict, events)
	if !known {
		fresh.Dir = r.Result.Dir
		r.Result = fresh
	}
	if was := r.Result.Status; was.Judged() {
		if was != fresh.Status {
			r.Warnings = append(r.Warnings, fmt.Sprintf("When it was run its result was %s; from the same history it is %s now.", was, fresh.Status))
		}
		r.Result.Status, r.Result.Failures, r.Result.Reasons = fresh.Status, fresh.Failures, fresh.Reasons
		r.Result.Events, r.Result.Expectations, r.Result.Checks = fresh.Events, fresh.Expectations, fresh.Checks
	}
	r.Verdict = &verdict
	if err := r.SetTimeline(page.NewTimeline(events, verdict, MaxEvents)); err != nil {
		r.Warnings = append(r.Warnings, "There is no timeline: "+err.Error())
	}
	return r
}

// ofHistory is what the heading of a history says of its run.
func ofHistory(events []history.Event) result.Result {
	head := events[0].Run
	return result.Result{Scenario: head.Scenario, Title: head.Title, Area: head.Area, File: head.File, Backend: head.Backend, Seed: head.Seed,
		Reproduce: head.Reproduce, Began: events[0].At, Took: events[len(events)-1].At.Sub(events[0].At)}
}

// files are links to what lies in the folder of a run.
func files(dir, out string) (all []page.File) {
	for _, f := range []page.File{
		{Name: result.HistoryFile, What: "everything that was seen, one event per line"},
		{Name: result.VerdictFile, What: "the judgement when it was run"},
		{Name: result.VerdictJSON, What: "the same for programs"},
		{Name: "logs", What: "output of every process, audit logs, journals of plugins"},
		{Name: result.ArtifactsDir, What: "objects, manifests and configurations"},
		{Name: result.FirstTryDir, What: "the first try, which was inconclusive; this is the second, alone"},
	} {
		path := filepath.Join(dir, f.Name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		f.Href = link(out, path)
		all = append(all, f)
	}
	return all
}

// link is a path as a page in out would name it.
func link(out, path string) string {
	from, err1 := filepath.Abs(out)
	to, err2 := filepath.Abs(path)
	rel, err := filepath.Rel(from, to)
	if err1 != nil || err2 != nil || err != nil {
		rel = path
	}
	return (&url.URL{Path: filepath.ToSlash(rel)}).String()
}
