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

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"
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

// File is a link to a file beside the page.
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

// clean is the run without characters that would be no text. HTML is escaped elsewhere.
func (r Run) clean() Run {
	r.Result.Title, r.Result.Reproduce = safe(r.Result.Title), safe(r.Result.Reproduce)
	r.Result.Reasons, r.Result.Notes = allSafe(r.Result.Reasons), allSafe(r.Result.Notes)
	r.Warnings = allSafe(r.Warnings)
	return r
}

func allSafe(texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, safe(text))
	}
	return out
}

// ID is the address of the run in the page; it is the same on every run.
func (r Run) ID() string {
	return noAddress.ReplaceAllString(r.Column+"."+r.Result.Scenario, "_")
}

var noAddress = regexp.MustCompile(`[^-_.0-9A-Za-z]`)

// HasTimeline says whether there is one to draw.
func (r Run) HasTimeline() bool { return r.Packed != "" }

// Status of a run for people: a class, a word, and a sign for those who do not see the colour.
type Status struct{ Class, Text, Sign string }

// Status of the run.
func (r Run) Status() Status {
	sign := map[result.Status]string{result.Passed: "✓", result.Failed: "✗", result.CouldNotRun: "!", result.NotSupported: "–", result.NotBegun: "…",
		result.Inconclusive: "?", result.Interrupted: "■"}[r.Result.Status]
	return Status{strings.ReplaceAll(string(r.Result.Status), " ", "-"), r.Result.StatusText(), sign}
}

func (r Run) Took() string { return text.Tenths(r.Result.Took).String() }

// Facts are the numbers of the run on one line.
func (r Run) Facts() string {
	words := []string{fmt.Sprintf("%d events", r.Result.Events), "took " + r.Took() + " with its preparation", fmt.Sprintf("%d expectations", r.Result.Expectations),
		fmt.Sprintf("%d checks", r.Result.Checks), fmt.Sprintf("seed %d", r.Result.Seed)}
	if r.Result.Plugin != "" {
		words = append(words, "plugin "+safe(r.Result.Plugin))
	}
	if r.Result.Operator != "" {
		words = append(words, "operator "+safe(r.Result.Operator))
	}
	if r.Verdict != nil {
		words[0] += " in " + seconds(r.Verdict.Duration)
	}
	if !r.Result.Began.IsZero() {
		words = append(words, "began "+r.Result.Began.UTC().Format("2006-01-02 15:04:05.000Z"))
	}
	return strings.Join(words, " · ")
}

// Invariants are those of the verdict, the violated first and those that judged nothing last.
func (r Run) Invariants() []check.Result {
	if r.Verdict == nil {
		return nil
	}
	all := slices.Clone(r.Verdict.Invariants)
	order := []check.Status{check.Failed, check.Excused, check.Passed, check.NotJudged}
	slices.SortStableFunc(all, func(a, b check.Result) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
	return all
}

// InvariantLine counts them.
func (r Run) InvariantLine() string {
	count := map[check.Status]int{}
	for _, i := range r.Invariants() {
		count[i.Status]++
	}
	return fmt.Sprintf("%d passed, %d violated, %d excused, %d had nothing to judge by", count[check.Passed], count[check.Failed], count[check.Excused], count[check.NotJudged])
}
