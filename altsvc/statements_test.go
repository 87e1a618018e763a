package altsvc

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// statements is the number of the statements about this package: S4-01 and so on. Those after it are about more than clients and advertisement.
const statements = 11

// Every statement about alternative services has a test or benchmark whose comment names it.
func TestStatementsHaveTests(t *testing.T) {
	named := map[string]bool{}
	for _, dir := range []string{".", "advertise"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for id := range statementsOf(file) {
				named[id] = true
			}
		}
	}
	for n := 1; n <= statements; n++ {
		if id := fmt.Sprintf("S4-%02d", n); !named[id] {
			t.Errorf("no test names the statement %s", id)
		}
	}
}

// statementsOf are the statements in the comments of a file's tests and benchmarks.
func statementsOf(file *ast.File) map[string]bool {
	all := map[string]bool{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && slices.ContainsFunc([]string{"Test", "Benchmark"}, func(p string) bool { return strings.HasPrefix(f.Name.Name, p) }) {
			for _, id := range regexp.MustCompile(`\bS4-\d\d\b`).FindAllString(f.Doc.Text(), -1) {
				all[id] = true
			}
		}
	}
	return all
}
