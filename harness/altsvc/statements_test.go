package altsvc

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of docs/altsvc.md has the tests whose comments name a statement. UPDATE=1 writes it.
func TestStatementsAreDocumented(t *testing.T) {
	const document, begin, end = "../../docs/altsvc.md", "<!-- statements: begin -->\n", "<!-- statements: end -->"
	text, err := os.ReadFile(document)
	if os.IsNotExist(err) {
		t.Skip("the package is not in its repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: no table between %q and %q", document, begin, end)
	}
	table := statementTable(t, ".", "advertise")
	if old == table {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("%s has\n%s\nthe tests have\n%s\nUPDATE=1 go test ./harness/altsvc writes it", document, old, table)
	}
	if err := os.WriteFile(document, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// statementTable lists for each statement the tests and benchmarks of some directories whose comments name it.
func statementTable(t *testing.T, dirs ...string) string {
	t.Helper()
	id := regexp.MustCompile(`\bS4-\d\d\b`)
	tests := map[string][]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Benchmark") {
					continue
				}
				for _, s := range slices.Compact(slices.Sorted(slices.Values(id.FindAllString(f.Doc.Text(), -1)))) {
					tests[s] = append(tests[s], "`"+strings.TrimPrefix(dir+".", "..")+f.Name.Name+"`")
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("| statement | tests |\n|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(&b, "| %s | %s |\n", s, strings.Join(tests[s], ", "))
	}
	return b.String()
}
