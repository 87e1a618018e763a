package scenarios

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/coverage"
)

//go:embed statements.yaml
var statements []byte

// Statements of the sources, in their order.
func Statements() ([]coverage.Statement, error) {
	var all []coverage.Statement
	if err := yaml.UnmarshalStrict(statements, &all); err != nil {
		return nil, fmt.Errorf("statements.yaml: %w", err)
	}
	return all, nil
}

// Source is the text of a scenario of the catalogue, as it was written; false for one in Go.
func Source(name string) ([]byte, bool) {
	text, err := files.ReadFile("catalogue/" + name + ".yaml")
	return text, err == nil
}
