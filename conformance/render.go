package conformance

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kmsharness/kmsharness/internal/junit"
	"github.com/kmsharness/kmsharness/internal/style"
)

//go:embed report.md.tmpl
var markdownText string // go:embed needs a variable

//go:embed report.html.tmpl
var htmlText string

var (
	// Markdown shows HTML, so texts are escaped in both.
	markdown = template.Must(template.New("markdown").Funcs(helpers).Parse(markdownText))
	page     = template.Must(template.New("page").Funcs(helpers).Parse(htmlText))
)

var helpers = map[string]any{
	"css":   style.Sheet,
	"join":  func(list []string) string { return strings.Join(list, ", ") },
	"class": func(word any) string { return strings.ReplaceAll(strings.ToLower(fmt.Sprint(word)), " ", "-") },
	// cell keeps a text inside one cell of a table.
	"cell": strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;").Replace,
	"code": func(text string) string {
		return "`" + strings.NewReplacer("`", "'", "\n", " ", "|", `\|`).Replace(text) + "`"
	},
}

// WriteMarkdown writes the report for a page of a repository or a comment on a pull request.
func (r *Report) WriteMarkdown(w io.Writer) error { return markdown.Execute(w, r.view()) }

// WriteHTML writes the report as one page that needs no network.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r.view()) }

// view is a report as the templates read it.
type view struct {
	*Report
	Failed   []Result
	Verdict  Verdict
	Subject  string
	Measured []Result
}

func (r *Report) view() view {
	v := view{Report: r, Failed: r.With(Failed), Verdict: r.Verdict(), Subject: strings.TrimSpace(r.Implementation.Name + " " + r.Implementation.Version)}
	for _, result := range r.With(Passed) {
		if len(result.Measured) > 0 {
			v.Measured = append(v.Measured, result)
		}
	}
	return v
}

// WriteJUnit writes the report as one JUnit suite, a case for each check. A blocked check is a failure: it showed nothing.
func (r *Report) WriteJUnit(w io.Writer) error {
	var doc junit.Suites
	suite := "kmsharness.conformance." + r.Suite
	for _, result := range r.Results {
		c := junit.Case{Class: suite + "." + string(result.Profile), Name: result.ID, Time: junit.Seconds(result.Duration)}
		switch result.Outcome {
		case Failed, Blocked:
			var text strings.Builder
			for _, l := range result.Lines() {
				fmt.Fprintf(&text, "%s: %s\n", l.Label, l.Text)
			}
			c.Failure = &junit.Problem{Message: result.Rule, Text: text.String()}
			if result.Outcome == Blocked {
				c.Failure.Message = "blocked: " + result.Reason
			}
		case NotSupported, Skipped, Inconclusive:
			c.Skipped = &junit.Problem{Message: string(result.Outcome) + ": " + result.Reason}
		}
		doc.Add(suite, c)
	}
	return doc.Write(w)
}
