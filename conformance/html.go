package conformance

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/kmsharness/kmsharness/internal/style"
)

var page = template.Must(template.New("page").Funcs(template.FuncMap(helpers)).Funcs(template.FuncMap{
	"css":   style.Sheet,
	"class": func(word any) string { return strings.ReplaceAll(strings.ToLower(fmt.Sprint(word)), " ", "-") },
}).Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{{.Subject}}: {{.Verdict}}</title>
<link rel="icon" href="data:,">
<style>{{css}}</style>
</head>
<body>
<header class="top"><h1>kmsharness</h1></header>
<main>
<h2>{{.Subject}} <span class="tag {{class .Verdict}}">{{.Verdict}}</span></h2>
<p class="dim">Suite {{.Suite}}{{with .Implementation}}{{if .Organization}}, {{.Organization}}{{end}}{{if .URL}}, <a href="{{.URL}}">{{.URL}}</a>{{end}}{{end}}.
Judged on {{.Date.Format "2006-01-02"}}{{range $k, $v := .Versions}}, {{$k}} {{$v}}{{end}}, seed {{.Seed}}.</p>
<div class="scroll">
<table><thead><tr><th scope="col">profile</th><th scope="col">result</th><th scope="col">passed</th><th scope="col">failed</th><th scope="col">not supported</th><th scope="col">skipped</th><th scope="col">blocked</th><th scope="col">inconclusive</th><th scope="col">not run</th></tr></thead>
<tbody>{{range .Profiles}}<tr><th scope="row">{{.Profile}}</th><td><span class="tag {{class .Verdict}}">{{.Verdict}}</span></td><td class="n">{{.Passed}}</td><td class="n">{{.Failed}}</td><td class="n">{{.NotSupported}}</td><td class="n">{{.Skipped}}</td><td class="n">{{.Blocked}}</td><td class="n">{{.Inconclusive}}</td><td class="n">{{.NotRun}}</td></tr>
{{end}}</tbody></table>
</div>
{{if .Failed}}<h3>Failed</h3>
<ol class="failures">
{{range .Failed}}<li id="{{.ID}}"><strong>{{.ID}}</strong> <span class="dim">{{.Profile}}</span>
<p>{{.Rule}}</p>
<dl>{{range .Lines}}<dt>{{.Label}}</dt><dd{{if eq .Label "response"}} class="seen"{{else if eq .Label "expected"}} class="allowed"{{end}}>{{.Text}}</dd>{{end}}</dl></li>
{{end}}</ol>{{end}}
<h3>All checks</h3>
<div class="scroll">
<table><thead><tr><th scope="col">check</th><th scope="col">rule, source, numbers</th></tr></thead>
<tbody>{{range .Results}}<tr><th scope="row">{{.ID}}<br><span class="tag {{class .Outcome}}">{{.Outcome}}</span> <span class="dim">{{.Profile}}</span></th><td>{{.Rule}}<br><small>{{.Source}}{{if .Reason}}<br>{{.Reason}}{{end}}{{if .Measured}}<br>{{join .Measured}}{{end}}</small></td></tr>
{{end}}</tbody></table>
</div>
{{if .Reproduce}}<h3>Reproduce</h3><pre><code>{{.Reproduce}}</code></pre>{{end}}
</main>
</body>
</html>
`))
