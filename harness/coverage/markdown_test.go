package coverage_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/coverage"
)

// markdown is docs/catalogue.md: which scenarios test which statement, on which backends, and what no scenario
// tests. It is an error that a scenario covers what is no statement.
func markdown(statements []coverage.Statement, entries []coverage.Entry) (string, error) {
	if err := known(statements, entries); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Catalogue\n\nMade from the scenario files by `UPDATE=1 go test ./harness/coverage`; do not edit.\n")
	scenariosOf(&b, entries)
	statementsOf(&b, statements, entries)
	return b.String(), nil
}

func known(statements []coverage.Statement, entries []coverage.Entry) error {
	for _, e := range entries {
		for _, id := range e.Scenario.Covers {
			if !slices.ContainsFunc(statements, func(s coverage.Statement) bool { return s.ID == id }) {
				return fmt.Errorf("scenario %s covers %s, which is no statement: see scenarios/statements.yaml", e.Scenario.Name, id)
			}
		}
	}
	return nil
}

func scenariosOf(b *strings.Builder, entries []coverage.Entry) {
	fmt.Fprintf(b, "\n## Scenarios\n\n%d scenarios.\n\n| scenario | what must hold | area | topology | faults | backends |\n|---|---|---|---|---|---|\n", len(entries))
	for _, e := range entries {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", named(e), cell(e.Scenario.Title), e.Scenario.Area, e.Topology(),
			orDash(strings.Join(e.Faults(), " ")), orDash(strings.Join(e.Backends, " ")))
	}
}

func statementsOf(b *strings.Builder, statements []coverage.Statement, entries []coverage.Entry) {
	b.WriteString("\n## Statements\n\n| id | statement | scenarios | backends |\n|---|---|---|---|\n")
	var open []string
	for _, s := range statements {
		var names, backends []string
		for _, e := range entries {
			if slices.Contains(e.Scenario.Covers, s.ID) {
				names, backends = append(names, named(e)), append(backends, e.Backends...)
			}
		}
		if names == nil {
			open = append(open, s.ID)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", s.ID, cell(s.Text), orDash(strings.Join(names, ", ")), orDash(strings.Join(unique(backends), " ")))
	}
	fmt.Fprintf(b, "\n%d of %d statements have a scenario.", len(statements)-len(open), len(statements))
	if open != nil {
		fmt.Fprintf(b, " Without: %s.", strings.Join(open, ", "))
	}
	b.WriteString("\n")
}

func named(e coverage.Entry) string {
	if e.Scenario.File == "" {
		return e.Scenario.Name + " (Go)"
	}
	return fmt.Sprintf("[%s](../%s)", e.Scenario.Name, e.Scenario.File)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

func orDash(s string) string { return cmp.Or(s, "-") }
