package undertest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/input"
	"github.com/kmsharness/kmsharness/internal/strictyaml"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// apiVersion and kind head every file.
const (
	apiVersion = "kmsharness.io/v1alpha1"
	kind       = "SystemUnderTest"
)

// document is a file.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	System
}

// file is where a System was read from. The zero value is none.
type file struct {
	name string
	root *yaml.Node
}

// Read reads a file, or standard input for the name "-".
func Read(name string) (System, error) {
	_, s, err := read(name)
	return s, err
}

// read reads a file, or standard input for the name "-". A mistake is one line with its place. The System is not validated.
func read(name string) (f file, s System, err error) {
	r, err := input.Open(name)
	if err != nil {
		return f, s, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, strictyaml.MaxBytes+1))
	if err != nil {
		return f, s, fmt.Errorf("%s: %w", name, err)
	}
	root, problems := strictyaml.Read(text, "system under test", "kind: "+kind)
	if len(problems) > 0 {
		p := problems[0]
		return f, s, fmt.Errorf("%s:%d:%d: %s", name, p.Line, p.Column, p.What)
	}
	f = file{name, root}
	var d document
	if err := f.unknown(root, reflect.TypeOf(d)); err != nil {
		return f, s, err
	}
	if err := sigsyaml.UnmarshalStrict(text, &d); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return f, s, f.at(Wrong(strings.TrimPrefix(wrong.Field, "System."), "a %s, expected %s", wrong.Value, wrong.Type))
		}
		return f, s, fmt.Errorf("%s: %w", name, err)
	}
	if d.APIVersion != apiVersion || d.Kind != kind {
		return f, s, fmt.Errorf("%s: apiVersion %q and kind %q, expected %s and %s", name, d.APIVersion, d.Kind, apiVersion, kind)
	}
	return f, d.System, nil
}

// unknown returns an error at the first key that t has no field for.
func (f file) unknown(n *yaml.Node, t reflect.Type) error {
	if n.Kind != yaml.MappingNode || t.Kind() != reflect.Struct {
		return nil // UnmarshalStrict reports a value of another type
	}
	known := map[string]reflect.Type{}
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if !field.Anonymous {
			known[jsonName(field)] = field.Type
			names = append(names, jsonName(field))
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		below, ok := known[key.Value]
		if !ok {
			hint := cmp.Or(suggest.DidYouMean(key.Value, names), ", expected "+strings.Join(names, ", "))
			return fmt.Errorf("%s:%d:%d: unknown field %.64q%s", f.name, key.Line, key.Column, key.Value, hint)
		}
		if err := f.unknown(n.Content[i+1], below); err != nil {
			return err
		}
	}
	return nil
}

// at adds the place in the file to a FieldError whose field, or one around it, is in the file.
func (f file) at(err error) error {
	var wrong *FieldError
	if f.root == nil || !errors.As(err, &wrong) {
		return err
	}
	n := f.root
	for name := range strings.SplitSeq(wrong.Field, ".") {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				n = n.Content[i+1]
				break
			}
		}
	}
	return fmt.Errorf("%s:%d:%d: %w", f.name, n.Line, n.Column, wrong)
}

// Encode is s as the text of a file.
func (s System) Encode() ([]byte, error) {
	text, err := sigsyaml.Marshal(document{apiVersion, kind, s})
	if err != nil {
		return nil, fmt.Errorf("system under test: %w", err)
	}
	return text, nil
}
