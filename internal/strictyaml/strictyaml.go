// Package strictyaml reads YAML files that people write, without what makes YAML surprising.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxBytes bounds a file. The longest of this repository have some kilobytes.
	MaxBytes = 1 << 20
	// maxNesting bounds the depth of a document; groups within groups need less.
	maxNesting = 40
	// maxNodes bounds the values of a document.
	maxNodes = 50_000
)

// Problem is one mistake, with its place in the file, from 1.
type Problem struct {
	Line, Column int
	What         string
}

// Read reads the one YAML document of a file. Everything that makes YAML surprising is refused. kind names what the file is, such as "scenario", and first is
// what is expected of an empty file.
func Read(data []byte, kind, first string) (*yaml.Node, []Problem) {
	if p := unreadable(data); p != nil {
		return nil, p
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isEmpty(&doc) {
		return nil, []Problem{{1, 1, "file is empty, expected " + first}}
	}
	if err != nil {
		return nil, []Problem{syntaxProblem(data, err)}
	}
	root := doc.Content[0]
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, []Problem{syntaxProblem(data, err)}
		}
		return nil, []Problem{{max(1, second.Line), max(1, second.Column), "a second document, expected one " + kind + " per file"}}
	}
	w := walker{kind: kind}
	w.walk(root, 1)
	return root, w.problems
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null"
}

// unreadable finds what would give a misleading message later, or none.
func unreadable(data []byte) []Problem {
	if len(data) > MaxBytes {
		return []Problem{{1, 1, fmt.Sprintf("file is %d bytes, expected at most %d", len(data), MaxBytes)}}
	}
	var problems []Problem
	for i, line := range bytes.Split(data, []byte("\n")) {
		if column, ok := invalidUTF8(line); ok {
			return []Problem{{i + 1, column, "byte is not valid UTF-8, expected a text file in UTF-8"}}
		}
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 && len(indent) < len(line) {
			problems = append(problems, Problem{i + 1, tab + 1, "a tab in the indentation, expected spaces"})
		}
	}
	return problems
}

func invalidUTF8(line []byte) (column int, found bool) {
	for i := 0; i < len(line); column++ {
		r, size := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && size == 1 {
			return column + 1, true
		}
		i += size
	}
	return 0, false
}

// lineOf finds the line in a message of the YAML library, which has no field for it.
var lineOf = regexp.MustCompile(`^line ([0-9]+): `)

// fromParser marks the messages whose line the YAML library counts from zero.
var fromParser = regexp.MustCompile(`^did not find expected (<|node content|',' or|key|'-' indicator)`)

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)

func syntaxProblem(data []byte, err error) Problem {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
	line := 1
	if m := lineOf.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = strings.TrimPrefix(text, "line "+m[1]+": ")
	}
	if fromParser.MatchString(text) {
		line++
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	return Problem{max(1, line), 1, fmt.Sprintf("not valid YAML: %.100s", text)}
}

// walker refuses, anywhere in the tree, aliases, anchors, tags, keys that are no text and keys that occur twice. What JSON could not hold it makes
// texts: keys that look like numbers, instants, and numbers without end.
type walker struct {
	kind     string
	nodes    int
	problems []Problem
}

func (w *walker) add(n *yaml.Node, format string, args ...any) {
	w.problems = append(w.problems, Problem{max(1, n.Line), max(1, n.Column), fmt.Sprintf(format, args...)})
}

func (w *walker) walk(n *yaml.Node, depth int) {
	w.nodes++
	switch {
	case w.nodes > maxNodes:
		if w.nodes == maxNodes+1 {
			w.add(n, "more than %d values, expected a %s of reasonable size", maxNodes, w.kind)
		}
		return
	case depth > maxNesting:
		w.add(n, "nested more than %d deep, expected a flatter %s", maxNesting, w.kind)
		return
	case n.Kind == yaml.AliasNode:
		w.add(n, "alias *%.64s, expected the value itself (aliases are not supported)", n.Value)
		return
	case n.Anchor != "":
		w.add(n, "anchor &%.64s, expected none (anchors are not supported)", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		w.add(n, "tag %.64s, expected none (tags are not supported)", n.Tag)
	}
	if n.Kind == yaml.MappingNode {
		w.keys(n)
	}
	if tag := n.ShortTag(); tag == "!!timestamp" || tag == "!!float" && strings.ContainsAny(n.Value, "nN") {
		n.Tag = "!!str"
	}
	for _, child := range n.Content {
		w.walk(child, depth+1)
	}
}

func (w *walker) keys(n *yaml.Node) {
	first := map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Value == "<<" {
			w.add(key, "a key that is not a plain word, expected a field name")
			continue
		}
		if old := first[key.Value]; old != nil {
			w.add(key, "field %.64q occurs twice, expected it once (first at line %d)", key.Value, old.Line)
			continue
		}
		first[key.Value], key.Tag = key, "!!str"
	}
}
