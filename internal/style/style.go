// Package style has the style sheet of the HTML pages: that of runs and that of conformance.
package style

import (
	_ "embed"
	"html/template"
)

//go:embed page.css
var sheet string

func Sheet() template.CSS { return template.CSS(sheet) }
