package report

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"
)

// Limits of what is shown, in characters.
const (
	maxMarkdown   = 60000 // keeps a summary below what hosts of pull requests take as one comment
	maxCell       = 160   // of a text in a table
	maxParagraph  = 900   // of a text in a list
	maxReproduced = 2000
)

//go:embed summary.tmpl
var summaryTemplate string // go:embed needs a variable

var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"cell": func(s string) string { return escape(s, maxCell) },
	"code": func(s string) string {
		return strings.ReplaceAll(contract.SafeText(s, maxReproduced), "```", "` ` `")
	},
	"heading": func(f result.Failure) string {
		heading := strings.TrimSpace(name(f) + " " + offset("at ", f))
		if f.More > 0 {
			heading += fmt.Sprintf(", and %d more of it", f.More)
		}
		return heading
	},
	"join":   func(separator string, list []string) string { return strings.Join(list, separator) },
	"lines":  func(s string) []string { return strings.Split(s, "\n") },
	"more":   func(n, most int) int { return max(n-most, 0) },
	"name":   name,
	"offset": func(f result.Failure) string { return offset("", f) },
	"tenths": text.Tenths,
	"text":   func(s string) string { return escape(s, maxParagraph) },
}).Parse(summaryTemplate))

func name(f result.Failure) string { return strings.TrimSpace(f.Code() + " " + f.Where) }

func offset(word string, f result.Failure) string {
	if f.At.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s+%.3fs", word, f.Offset.Seconds())
}

// escape makes a text of others one line of plain Markdown: plugins may say anything, and it must neither draw tables nor call people.
func escape(s string, most int) string {
	s = contract.SafeText(s, most)
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "[", "\\[", "]", "\\]", "#", "\\#", "!", "\\!",
		"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "@\u200b").Replace(s)
}

// rendered is a value by one of the templates. That fails only by a mistake in the template, which is shown then.
func rendered(template string, value any) string {
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, template, value); err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

// WriteText writes what a person reads at the end: a table, each failure in full, and the last line.
func (s Summary) WriteText(w io.Writer) error {
	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, rendered("table", s))
	columns.Flush()                                                                                    // a builder does not fail
	_, err := io.WriteString(w, contract.SafeLines(table.String()+rendered("text", s), maxReproduced)) // names and texts of a result are anybody's
	return err
}

// OtherForms reports whether a result is of another wire form than the default: then the table has a column for it.
func (s Summary) OtherForms() bool {
	return slices.ContainsFunc(s.Results, result.Result.OtherForm)
}

// Shown are the results of which there is more to say than the table has. Those that were not begun have one of two reasons.
func (s Summary) Shown() []result.Result {
	return slices.DeleteFunc(s.Sorted(), func(r result.Result) bool {
		return r.Status == result.NotBegun || r.Status == result.Passed && !r.JudgedAgain && len(r.Notes)+len(r.House) == 0
	})
}

// notBegun are scenarios that were not begun for the same reason.
type notBegun struct {
	Reason    string
	Scenarios []string
}

func (s Summary) NotBegun() (all []notBegun) {
	for _, r := range s.Sorted() {
		if r.Status != result.NotBegun {
			continue
		}
		reason := result.Indent(strings.Join(r.Reasons, "; "))
		i := slices.IndexFunc(all, func(x notBegun) bool { return x.Reason == reason })
		if i < 0 {
			i, all = len(all), append(all, notBegun{Reason: reason})
		}
		all[i].Scenarios = append(all[i].Scenarios, r.Scenario)
	}
	return all
}

// comment is a summary as Markdown.
type comment struct {
	Summary
	Coverage string
	Broken   []result.Result
}

// Markdown is all results for a comment on a pull request: what did not pass first, then the counts; details are folded.
func (s Summary) Markdown(coverage string) string {
	c := comment{s, coverage, slices.DeleteFunc(s.Sorted(), func(r result.Result) bool { return !r.Status.Bad() })}
	out, all := rendered("markdown", c), rendered("all", s.Sorted())
	left := maxMarkdown - len(out) - len(all)
	for i, r := range c.Broken {
		details := rendered("details", r)
		if left -= len(details); left < 0 {
			out += fmt.Sprintf("\nDetails of %d more are in %s.\n", len(c.Broken)-i, result.PageFile)
			break
		}
		out += details
	}
	if left += maxMarkdown / 2; left > 0 {
		out += all
	}
	return out
}

func (c comment) Title() string {
	switch n := len(c.Broken); {
	case c.ran() == 0 && n == 0:
		return "❌ kmsharness: " + c.NothingJudged()
	case n > 0:
		return fmt.Sprintf("❌ kmsharness: %d of %d did not pass", n, len(c.Results)-c.Count(result.NotSupported)-c.Count(result.NotBegun))
	}
	return fmt.Sprintf("✅ kmsharness: all %d passed", c.ran())
}

func (c comment) Backends() (out []string) {
	for _, r := range c.Results {
		if !slices.Contains(out, r.On()) {
			out = append(out, r.On())
		}
	}
	if len(out) == 0 {
		out = append(out, c.backend())
	}
	return out
}
