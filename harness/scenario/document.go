package scenario

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
	// MaxFileBytes bounds a scenario file. The longest of the catalogue has some kilobytes.
	MaxFileBytes = 1 << 20
	// maxNesting bounds the depth of a document; groups within groups need less.
	maxNesting = 40
	// maxNodes bounds the values of a document.
	maxNodes = 50_000
)

// document reads the one YAML document of a file. Everything that makes YAML surprising is refused.
func document(file string, data []byte) (*yaml.Node, Problems) {
	if p := unreadable(file, data); p != nil {
		return nil, p
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isEmpty(&doc) {
		return nil, Problems{{File: file, Pos: Position{1, 1}, What: "file is empty, expected apiVersion: " + APIVersion}}
	}
	if err != nil {
		return nil, Problems{syntaxProblem(file, data, err)}
	}
	root := doc.Content[0]
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, Problems{syntaxProblem(file, data, err)}
		}
		return nil, Problems{{File: file, Pos: position(&second), What: "a second document, expected one scenario per file"}}
	}
	w := walker{file: file}
	w.walk(root, 1)
	return root, w.problems
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null"
}

// unreadable finds what would give a misleading message later, or none.
func unreadable(file string, data []byte) Problems {
	if len(data) > MaxFileBytes {
		return Problems{{File: file, Pos: Position{1, 1},
			What: fmt.Sprintf("file is %d bytes, expected at most %d", len(data), MaxFileBytes)}}
	}
	var problems Problems
	for i, line := range bytes.Split(data, []byte("\n")) {
		if column, ok := invalidUTF8(line); ok {
			return Problems{{File: file, Pos: Position{i + 1, column}, What: "byte is not valid UTF-8, expected a text file in UTF-8"}}
		}
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if tab := bytes.IndexByte(indent, '\t'); tab >= 0 && len(indent) < len(line) {
			problems = append(problems, Problem{File: file, Pos: Position{i + 1, tab + 1}, What: "a tab in the indentation, expected spaces"})
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

func syntaxProblem(file string, data []byte, err error) Problem {
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
	return Problem{File: file, Pos: Position{max(1, line), 1}, What: "not valid YAML: " + clip(text)}
}

func position(n *yaml.Node) Position { return Position{max(1, n.Line), max(1, n.Column)} }

// walker refuses, anywhere in the tree, aliases, anchors, tags, keys that are no text and keys that occur twice. What JSON could not hold it makes
// texts: keys that look like numbers, instants, and numbers without end.
type walker struct {
	file     string
	nodes    int
	problems Problems
}

func (w *walker) add(n *yaml.Node, format string, args ...any) {
	w.problems = append(w.problems, Problem{File: w.file, Pos: position(n), What: fmt.Sprintf(format, args...)})
}

func (w *walker) walk(n *yaml.Node, depth int) {
	w.nodes++
	switch {
	case w.nodes > maxNodes:
		if w.nodes == maxNodes+1 {
			w.add(n, "more than %d values, expected a scenario of reasonable size", maxNodes)
		}
		return
	case depth > maxNesting:
		w.add(n, "nested more than %d deep, expected a flatter scenario", maxNesting)
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
			w.add(key, "field %s occurs twice, expected it once (first at line %d)", quote(key.Value), old.Line)
			continue
		}
		first[key.Value], key.Tag = key, "!!str"
	}
}
