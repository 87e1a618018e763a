package scenario_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func schemaText(t *testing.T) []byte {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := parser.Schema()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(scenario.SchemaFile, parsed); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(scenario.SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// accepted says whether an editor would find nothing wrong. What is no YAML at all is not accepted.
func accepted(s *jsonschema.Schema, text string) error {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// The published schema is the one that the parser's table gives.
func TestSchemaIsPublished(t *testing.T) {
	file := filepath.Join("..", "..", "docs", scenario.SchemaFile)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, schemaText(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if published, err := os.ReadFile(file); err != nil || !bytes.Equal(published, schemaText(t)) {
		t.Errorf("%s is not what the parser knows (%v): run UPDATE=1 go test ./harness/scenario -run TestSchemaIsPublished", file, err)
	}
}

// Every file of the catalogue is accepted, and names the schema for editors.
func TestSchemaAcceptsTheCatalogue(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "scenarios", "catalogue", "*.yaml"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := accepted(s, string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if first, _, _ := strings.Cut(string(text), "\n"); first != "# yaml-language-server: $schema=../../docs/"+scenario.SchemaFile {
			t.Errorf("%s: its first line is %q, expected the schema for editors", file, first)
		}
	}
}

// A schema cannot know what depends on two values, on the file's name, or on the text before it is read as YAML. Everything else that
// is wrong is refused by it as well.
func TestSchemaRefusesMistakes(t *testing.T) {
	s := compiled(t)
	if err := accepted(s, valid); err != nil {
		t.Fatalf("the good file: %v", err)
	}
	var passed []string
	for _, m := range malformedFiles() {
		text := m.replace[1]
		if m.replace[0] != "" {
			text = strings.Replace(valid, m.replace[0], m.replace[1], 1)
		}
		if accepted(s, text) == nil {
			passed = append(passed, m.name)
		}
	}
	beyond := beyondSchema()
	slices.Sort(passed)
	slices.Sort(beyond)
	if !slices.Equal(passed, beyond) {
		t.Errorf("accepted by the schema:\n%q\nexpected:\n%q", passed, beyond)
	}
	t.Logf("%d of %d malformed files are refused by the schema", len(malformedFiles())-len(passed), len(malformedFiles()))
}
