package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Run is one scenario in one column of the matrix.
type Run struct {
	// Column is the backend, with the folder where two have the same.
	Column string
	Result result.Result
	// Verdict is nil for what was not judged.
	Verdict *check.Verdict
	// Warnings are what a reader of this page must know about it.
	Warnings []string
	Files    []File
	// Marks and Packed are of the timeline; both are empty without a history.
	Marks  []Mark
	Packed template.HTML
}

type File struct{ Name, Href, What string }

// SetTimeline packs a timeline: compressed, because the JSON of events repeats itself, in letters that HTML takes as they are.
func (r *Run) SetTimeline(t Timeline) error {
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode the timeline of %s: %w", r.Result.Scenario, err)
	}
	var packed bytes.Buffer
	letters := base64.NewEncoder(base64.StdEncoding, &packed)
	zip := gzip.NewWriter(letters)
	if _, err = zip.Write(data); err == nil {
		err = zip.Close()
	}
	if err == nil {
		err = letters.Close()
	}
	if err != nil {
		return fmt.Errorf("pack the timeline of %s: %w", r.Result.Scenario, err)
	}
	r.Packed, r.Marks = template.HTML(packed.String()), t.Marks
	return nil
}

// ID is the address of the run in the page; it is the same on every run.
func (r Run) ID() string {
	return noAddress.ReplaceAllString(r.Column+"."+r.Result.Scenario, "_")
}

var noAddress = regexp.MustCompile(`[^-_.0-9A-Za-z]`)

// Status of a run for people: a class, a word, and a sign for those who do not see the colour.
type Status struct{ Class, Text, Sign string }

func (r Run) Status() Status {
	sign := map[result.Status]string{result.Passed: "✓", result.Failed: "✗", result.CouldNotRun: "!", result.NotSupported: "–", result.NotBegun: "…",
		result.Inconclusive: "?", result.Interrupted: "■"}[r.Result.Status]
	return Status{strings.ReplaceAll(string(r.Result.Status), " ", "-"), r.Result.StatusText(), sign}
}

// Invariants are those of the verdict, the violated first and those that judged nothing last.
func (r Run) Invariants() []check.Result {
	return slices.Concat(r.With(check.Failed), r.With(check.Excused), r.With(check.Passed), r.With(check.NotJudged))
}

// With are the invariants with a status.
func (r Run) With(status check.Status) (all []check.Result) {
	if r.Verdict != nil {
		all = slices.DeleteFunc(slices.Clone(r.Verdict.Invariants), func(i check.Result) bool { return i.Status != status })
	}
	return all
}

// Failure is one thing that was not as it should be, in words.
type Failure struct {
	result.Failure
	Excused string
	Mark    int // in the timeline; -1 for none
}

// Failures are those of the result, and what a scenario excuses.
func (r Run) Failures() []Failure {
	var all []Failure
	for _, f := range r.Result.Failures {
		all = append(all, r.failure(f))
	}
	if r.Verdict == nil {
		return all
	}
	for _, i := range r.Verdict.Invariants {
		if i.Status == check.Excused && len(i.Violations) > 0 {
			x := i.Violations[0]
			f := r.failure(result.Failure{ID: i.ID, Rule: x.Rule, At: x.At, Offset: x.Offset, Where: x.Node, Seen: x.Seen, Allowed: x.Allowed, More: i.Count - 1})
			f.Excused = safe(i.Excuse)
			all = append(all, f)
		}
	}
	return all
}

func (r Run) failure(f result.Failure) Failure {
	out := Failure{Failure: f, Mark: r.markOf(f)}
	out.Seen, out.Allowed, out.Because = safe(f.Seen), safe(f.Allowed), safe(f.Because)
	return out
}

// markOf is the first mark of what failed.
func (r Run) markOf(f result.Failure) int {
	at := float64(f.Offset.Microseconds()) / 1000
	found := -1
	for i, m := range r.Marks {
		if m.ID != f.Code() {
			continue
		}
		if found < 0 {
			found = i
		}
		if diff := m.At - at; diff < 1 && diff > -1 {
			return i
		}
	}
	return found
}

// seconds for people.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }
