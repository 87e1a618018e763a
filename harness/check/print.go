package check

import (
	_ "embed"
	"errors"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// maxPrinted bounds the violations of one invariant that Print shows.
const maxPrinted = 5

// maxLineChars bounds one line of Print.
const maxLineChars = 8192

//go:embed print.tmpl
var printTemplate string // go:embed needs a variable

var verdictText = template.Must(template.New("").Funcs(template.FuncMap{
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
	// What a container engine says is safe to show.
	"container": func(c ContainerChange) string { return contract.SafeText(c.String(), text.MaxShown) },
	"failing":   failingParts,
	"more":      func(all, shown int) int { return max(all-shown, 0) },
	"outcome": func(o Outcome) string {
		if o == RunPassed {
			return string(o)
		}
		return strings.ToUpper(string(o))
	},
	"quoted": text.Quoted,
	"short":  text.Short,
	"shown":  func(all []Violation) []Violation { return all[:min(len(all), maxPrinted)] },
}).Parse(printTemplate))

// Print writes a verdict for people: a line for every invariant, then each violation with what was seen, what was
// allowed, when, and how to run it again. The output is bounded whatever the history holds.
func Print(w io.Writer, v Verdict) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	err := errors.Join(verdictText.ExecuteTemplate(&b, "head", v), verdictText.ExecuteTemplate(table, "table", v), table.Flush(), verdictText.ExecuteTemplate(&b, "text", v))
	if err == nil {
		_, err = io.WriteString(w, contract.SafeLines(b.String(), maxLineChars)) // names and texts of a history are anybody's
	}
	return err
}

// part is one thing that failed: a problem, or an invariant.
type part struct {
	Problem, Because string
	Result           Result
}

// failingParts are what failed, the cause first, and before it what is wrong with the recording.
func failingParts(v Verdict) (all []part) {
	problems := 0
	problem := func(text, because string) {
		if problems++; problems <= MaxViolations {
			all = append(all, part{Problem: text, Because: because})
		}
	}
	for _, p := range v.Problems {
		if !slices.ContainsFunc(v.Failing, func(f Failing) bool { return f.problem == p }) {
			problem(p, "")
		}
	}
	for _, f := range v.Failing {
		if f.problem != "" {
			problem(f.problem, f.Because)
		} else if i := slices.IndexFunc(v.Invariants, func(r Result) bool { return r.ID == f.ID }); i >= 0 {
			all = append(all, part{Result: v.Invariants[i]})
		}
	}
	return all
}
