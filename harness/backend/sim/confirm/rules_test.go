package confirm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const model = "../../../../docs/model.md"

// catalogue has the scenarios that confirm a rule on real control planes.
const catalogue = "../../../../scenarios/catalogue/*.yaml"

// tests are the names of the tests of a room, as docs/model.md writes them.
func tests(t *testing.T, prefix, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files of tests", dir, err, len(files))
	}
	all := map[string]bool{}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				all[prefix+"."+f.Name.Name] = true
			}
		}
	}
	return all
}

// problems is what is wrong with a text like docs/model.md.
func problems(text string, known map[string]bool) (wrong []string) {
	scenario := regexp.MustCompile("^`([a-z0-9-]+)`$")
	name, named := regexp.MustCompile("^`([a-z]+\\.Test[A-Za-z0-9]+)`$"), map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| rule ") {
			continue
		}
		for i, cell := range cells[1:] {
			cell = strings.TrimSpace(cell)
			m, s := name.FindStringSubmatch(cell), scenario.FindStringSubmatch(cell)
			switch {
			case s != nil && i == 1 && !known[s[1]]:
				wrong = append(wrong, cells[0]+": there is no scenario "+s[1])
			case s != nil && i == 1:
			case m == nil && (i == 0 || cell != "upstream" && cell != "measured" && cell != "itself"):
				wrong = append(wrong, cells[0]+": "+cell+" is not the name of a test")
			case m != nil && !known[m[1]]:
				wrong = append(wrong, cells[0]+": there is no "+m[1])
			case m != nil:
				named[m[1]] = true
			}
		}
	}
	for test := range known {
		if strings.HasPrefix(test, "confirm.") && !named[test] && test != "confirm.TestEveryRuleHasItsTests" && test != "confirm.TestMain" && test != "confirm.TestWrongRulesAreFound" {
			wrong = append(wrong, test+" confirms no rule")
		}
	}
	return wrong
}

func known(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for prefix, dir := range map[string]string{"sim": "..", "store": "../store", "confirm": "."} {
		for name := range tests(t, prefix, dir) {
			all[name] = true
		}
	}
	files, err := filepath.Glob(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all[strings.TrimSuffix(filepath.Base(f), ".yaml")] = true
	}
	return all
}

func TestEveryRuleHasItsTests(t *testing.T) {
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(text), "\n| "); rows < 20 {
		t.Fatalf("%d rows in %s", rows, model)
	}
	for _, wrong := range problems(string(text), known(t)) {
		t.Errorf("docs/model.md: %s", wrong)
	}
}

func TestWrongRulesAreFound(t *testing.T) {
	for row, want := range map[string]string{
		"| a rule | `sim.TestThatIsGone` | measured |": "there is no sim.TestThatIsGone",
		"| a rule | measured | measured |":             "measured is not the name of a test",
		"| a rule | `sim.TestWatches` | hearsay |":     "hearsay is not the name of a test",
		"| a rule | `sim.TestWatches` | `no-such` |":   "there is no scenario no-such",
		"| a rule | `steady-state` | measured |":       "is not the name of a test",
		"":                                             "confirm.TestLockstep confirms no rule",
	} {
		if got := strings.Join(problems(row, known(t)), "\n"); !strings.Contains(got, want) {
			t.Errorf("%q: %q, expected %q", row, got, want)
		}
	}
}
