package conformance

import "html/template"

var page = template.Must(template.New("page").Funcs(template.FuncMap(helpers)).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Subject}}: {{.Verdict}}</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1b1f24; background: #fff }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d0d7de; vertical-align: top; overflow-wrap: anywhere }
td.n { text-align: right } code { background: #f3f4f6; padding: .1rem .3rem }
.passed, .conformant { color: #116329 } .failed, .not { color: #a40e26; font-weight: 600 } .other { color: #6a5d00 }
section { border-left: 4px solid #a40e26; padding-left: 1rem; margin: 1.5rem 0 }
</style></head><body>
<h1>{{.Subject}}: <span class="{{if eq .Verdict "conformant"}}conformant{{else}}not{{end}}">{{.Verdict}}</span></h1>
<p>Suite {{.Suite}}{{with .Implementation}}{{if .Organization}}, {{.Organization}}{{end}}{{if .URL}}, <a href="{{.URL}}">{{.URL}}</a>{{end}}{{end}}.
Judged on {{.Date.Format "2006-01-02"}}{{range $k, $v := .Versions}}, {{$k}} {{$v}}{{end}}, seed {{.Seed}}.</p>
<table><tr><th>profile<th>result<th>passed<th>failed<th>not supported<th>skipped<th>blocked<th>inconclusive<th>not run</tr>
{{range .Profiles}}<tr><td>{{.Profile}}<td class="{{if .Conformant}}conformant{{else}}not{{end}}">{{.Verdict}}<td class="n">{{.Passed}}<td class="n">{{.Failed}}<td class="n">{{.NotSupported}}<td class="n">{{.Skipped}}<td class="n">{{.Blocked}}<td class="n">{{.Inconclusive}}<td class="n">{{.NotRun}}</tr>
{{end}}</table>
{{if .Failed}}<h2>Failed</h2>{{end}}
{{range .Failed}}<section id="{{.ID}}"><h3>{{.ID}}</h3><p>{{.Rule}}</p>
<table><tr><th>profile<td>{{.Profile}}</tr>{{range .Lines}}<tr><th>{{.Label}}<td>{{.Text}}</tr>{{end}}</table></section>
{{end}}
<h2>All checks</h2>
<table><tr><th>check<th>profile<th>outcome<th>rule, source, numbers</tr>
{{range .Results}}<tr><td>{{.ID}}<td>{{.Profile}}<td class="{{if eq .Outcome "passed"}}passed{{else if eq .Outcome "failed"}}failed{{else}}other{{end}}">{{.Outcome}}<td>{{.Rule}}<br><small>{{.Source}}{{if .Reason}}<br>{{.Reason}}{{end}}{{if .Measured}}<br>{{join .Measured}}{{end}}</small></tr>
{{end}}</table>
{{if .Reproduce}}<h2>Reproduce</h2><p><code>{{.Reproduce}}</code></p>{{end}}
</body></html>
`))
