package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxFileBytes bounds a file; the longest of this repository has some kilobytes.
	MaxFileBytes = 256 << 10
	// maxNodes bounds its values.
	maxNodes = 10_000
)

// Parse reads a profile. All mistakes are told at once, one line each, with their place: file:line: what is wrong, and what
// was expected.
func Parse(file string, text []byte) (*Profile, error) {
	r := &reader{file: file}
	root := r.document(text)
	if len(r.problems) > 0 {
		return nil, r.err()
	}
	p := r.profile(root)
	if len(r.problems) > 0 {
		return nil, r.err()
	}
	return p, nil
}

// reader collects mistakes.
type reader struct {
	file     string
	nodes    int
	problems []error
}

func (r *reader) err() error { return errors.Join(r.problems...) }

func (r *reader) add(line int, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.file, max(1, line), fmt.Sprintf(format, args...)))
}

// document reads the one YAML document, and refuses what makes YAML surprising.
func (r *reader) document(text []byte) *yaml.Node {
	if len(text) > MaxFileBytes {
		r.add(1, "the file has %d bytes, expected at most %d", len(text), MaxFileBytes)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.add(1, "the file is empty, expected the fields %s", strings.Join(fields(), ", "))
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.add(max(1, second.Line), "a second document, expected one profile in a file")
		return nil
	}
	root := doc.Content[0]
	r.walk(root)
	return root
}

// syntax gives the library's "yaml: line 3: …" the form of all other mistakes.
func (r *reader) syntax(err error) {
	what := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
	line := 1
	if _, scanned := fmt.Sscanf(what, "line %d:", &line); scanned == nil {
		_, what, _ = strings.Cut(what, ": ")
	}
	r.add(line, "not valid YAML: %.200s", what)
}

func (r *reader) walk(n *yaml.Node) {
	r.nodes++
	switch {
	case r.nodes == maxNodes:
		r.add(n.Line, "more than %d values, expected a profile of reasonable size", maxNodes)
	case r.nodes > maxNodes:
		return
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.add(n.Line, "an anchor or alias, expected the value itself")
		return
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n.Line, "tag %.32s, expected none", n.Tag)
	}
	for _, child := range n.Content {
		r.walk(child)
	}
}
