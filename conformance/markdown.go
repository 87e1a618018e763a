package conformance

import (
	"html/template"
	"io"
	"strings"
)

// WriteMarkdown writes the report for a page of a repository or a comment on a pull request.
func (r *Report) WriteMarkdown(w io.Writer) error { return markdown.Execute(w, r.view()) }

// WriteHTML writes the report as one page that needs no network.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r.view()) }

// view is a report as the templates read it.
type view struct {
	*Report
	Failed   []Result
	NotRun   []Result
	Verdict  Verdict
	Subject  string
	Measured []Result
}

func (r *Report) view() view {
	v := view{Report: r, Failed: r.With(Failed), Verdict: r.Verdict(), Subject: r.Implementation.Name}
	if r.Implementation.Version != "" {
		v.Subject += " " + r.Implementation.Version
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case Failed:
		case Passed:
			if len(result.Measured) > 0 {
				v.Measured = append(v.Measured, result)
			}
		default:
			v.NotRun = append(v.NotRun, result)
		}
	}
	return v
}

var helpers = map[string]any{
	"join": func(list []string) string { return strings.Join(list, ", ") },
	// cell keeps a text inside one cell of a table.
	"cell": func(text string) string {
		return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;").Replace(text)
	},
	"code": func(text string) string {
		return "`" + strings.NewReplacer("`", "'", "\n", " ", "|", `\|`).Replace(text) + "`"
	},
}

var markdown = template.Must(template.New("markdown").Funcs(helpers).Parse(`# {{.Subject}}: {{.Verdict}} ({{.Suite}})

{{with .Implementation}}{{if .Organization}}{{.Organization}}. {{end}}{{if .URL}}<{{.URL}}>. {{end}}{{end}}Judged on {{.Date.Format "2006-01-02"}}{{range $k, $v := .Versions}}, {{$k}} {{$v}}{{end}}, seed {{.Seed}}.

| profile | result | passed | failed | not supported | skipped | blocked | inconclusive | not run |
|---|---|---:|---:|---:|---:|---:|---:|---:|
{{range .Profiles}}| {{.Profile}} | {{.Verdict}} | {{.Passed}} | {{.Failed}} | {{.NotSupported}} | {{.Skipped}} | {{.Blocked}} | {{.Inconclusive}} | {{.NotRun}} |
{{end}}{{if .Failed}}
## Failed
{{range .Failed}}
### {{.ID}}

{{.Rule}}

| | |
|---|---|
| profile | {{.Profile}} |
{{range .Lines}}| {{.Label}} | {{cell .Text}} |
{{end}}{{end}}{{end}}{{if .NotRun}}
## Not judged

| check | outcome | reason |
|---|---|---|
{{range .NotRun}}| {{.ID}} | {{.Outcome}} | {{cell .Reason}} |
{{end}}{{end}}{{if .Measured}}
## Measured

| check | measured |
|---|---|
{{range .Measured}}| {{.ID}} | {{cell (join .Measured)}} |
{{end}}{{end}}
## All checks

| check | profile | outcome | rule |
|---|---|---|---|
{{range .Results}}| {{.ID}} | {{.Profile}} | {{.Outcome}} | {{cell .Rule}} |
{{end}}{{if .Reproduce}}
## Reproduce

{{code .Reproduce}}
{{end}}`))
