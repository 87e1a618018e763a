package undertest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/internal/command"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// FieldError is a mistake in one field of a System, such as reporter.command.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// Wrong is a mistake in a field.
func Wrong(field, format string, args ...any) error {
	return &FieldError{field, fmt.Errorf(format, args...)}
}

// field is one of a program under test: a leaf of a System.
type field struct {
	path  string // reporter.command
	value reflect.Value
	reflect.StructField
}

// enum are the values that the field may have; none: any.
func (f field) enum() []string {
	if text := f.Tag.Get("enum"); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

// fields are the leaves of a System, in the order of their declaration.
func (s *System) fields() (all []field) {
	programs := reflect.ValueOf(s).Elem()
	for i := range programs.NumField() {
		program := programs.Field(i)
		for _, f := range reflect.VisibleFields(program.Type()) {
			if f.Anonymous {
				continue
			}
			path := jsonName(programs.Type().Field(i)) + "." + jsonName(f)
			all = append(all, field{path, program.FieldByIndex(f.Index), f})
		}
	}
	return all
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Validate returns a FieldError if s cannot be used on any backend.
func (s System) Validate() error {
	for _, f := range s.fields() {
		if err := f.validate(); err != nil {
			return err
		}
	}
	if _, err := command.Split(s.FakePlugin.Args); err != nil {
		return &FieldError{"fakePlugin.args", err}
	}
	return cmp.Or(validateImage("reporter", s.Reporter.Command, s.Reporter.Image, s.Reporter.Args), s.Operator.validate(), s.Plugin.validate())
}

func (f field) validate() error {
	if f.value.Kind() != reflect.String || f.value.String() == "" {
		return nil
	}
	text := f.value.String()
	if known := f.enum(); known != nil && !slices.Contains(known, text) {
		return Wrong(f.path, "%q: expected %s%s", text, strings.Join(known, " or "), suggest.DidYouMean(text, known))
	}
	if tag, ok := f.Tag.Lookup("template"); ok {
		if _, err := command.Parse(text, placeholders(tag)...); err != nil {
			return &FieldError{f.path, err}
		}
	}
	return nil
}

// validateImage returns an error unless a role has a command, an image with or without arguments, or nothing.
func validateImage(role, command, image, args string) error {
	if image != "" && command != "" {
		return Wrong(role+".image", "expected without %s.command: an image has its own program, and takes %[1]s.args", role)
	}
	if args != "" && image == "" {
		return Wrong(role+".args", "expected with %s.image only", role)
	}
	return nil
}

func (o Operator) validate() error {
	switch {
	case o.Patience < 0:
		return Wrong("operator.patience", "%d: expected 1 or more", o.Patience)
	case o.Full() && o.Command == "":
		return Wrong("operator.scope", "%s: expected with operator.command only: an image runs in a pod of an operator with the scope %s", o.Scope, ScopeEncryption)
	}
	return validateImage("operator", o.Command, o.Image, o.Args)
}

func (p Plugin) validate() error {
	switch {
	case p.IsZero():
		return nil
	case p.Command == "":
		return Wrong("plugin", "expected with plugin.command only")
	case !Has(p.Command, PlaceSocket, PlaceEndpoint):
		return Wrong("plugin.command", "%q: expected {%s}, the path of the socket that the plugin is to listen on, or {%s}, the same as unix:///PATH", p.Command, PlaceSocket, PlaceEndpoint)
	case p.Image != "" && !strings.HasPrefix(ProgramOf(p.Command), "/"):
		return Wrong("plugin.command", "program %q: expected an absolute path in plugin.image", ProgramOf(p.Command))
	case (p.Break == "") != (p.Restore == ""):
		return Wrong("plugin.break", "expected with plugin.restore, and the other way round")
	}
	return nil
}
