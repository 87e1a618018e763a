package result

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/text"
)

//go:embed text.tmpl
var textTemplate string // go:embed needs a variable

var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"indent": Indent,
	"join":   func(list []string) string { return strings.Join(list, ", ") },
	"tenths": text.Tenths,
	"upper":  func(s Status) string { return strings.ToUpper(string(s)) },
}).Parse(textTemplate))

// Text is what is shown of a scenario that did not pass, or that has notes; the whole verdict is in its directory.
func (r Result) Text() string {
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, "result", r); err != nil {
		return fmt.Sprintf("%s: %s: %v\n", r.Scenario, r.Status, err)
	}
	return b.String()
}

// FirstTry is the folder of the first try of a scenario that was judged again.
func (r Result) FirstTry() string { return filepath.Join(r.Dir, FirstTryDir) }

// maxLineChars bounds one line of a text that came from outside.
const maxLineChars = 4096

// Indent keeps a text of several lines below its first, and each line safe for a terminal: plugins may say anything.
func Indent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = contract.SafeText(line, maxLineChars)
	}
	return strings.Join(lines, "\n               ")
}
