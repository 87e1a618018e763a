package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// shape is the fields of a mapping of the file format, as the tags of a Go struct describe them. The parser, the validation, the schema, and
// what is done with all actions alike go by it. Beside yaml and the keywords of JSON schemas (github.com/swaggest/jsonschema-go) the tags are:
//
//	expected  in words, what a text that does not match the pattern should be
//	item      what an item of a list is, in messages
//	refers    what a text names: node (or any), nodes (any and all, too), keyID, apiServer; newNode and linkEnd, which the verb checks
//	target    selects what an action acts on, which the history calls so: it is no parameter of the action
//	positive  a duration that must not be zero
//	cel       an expression
//	with      FIELD=VALUE,…: the field is given with these values of another field only; needed, an example: and must be given with them
//	without   FIELD=VALUE,…: the field is not given with these values of another field; FIELD alone: with any; why, in words
//	undo      FROM=TO,…: the values that take back what an action with others did; TO alone takes back all others
//	verbs     the verbs that have the field; VERB-enum: the enum of one verb
//	only      those fields of a struct that there are in this place; keys: those of an inline map
type shape struct {
	what   string // in messages: "field is missing in metadata"
	fields []field
	open   bool // other fields may have any value
}

type field struct {
	reflect.StructField
	name  string
	key   string // of the inline map that StructField is; empty: it is none
	inner *shape // of a mapping, or of the items of a list
}

// shapeOf is the shape of a struct that is the value of a keyword, such as a verb.
func shapeOf(t reflect.Type, keyword string, only ...string) shape {
	s := shape{what: keyword}
	for i := range t.NumField() {
		f := field{StructField: t.Field(i)}
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		verbs := f.words("verbs")
		switch {
		case verbs != nil && !slices.Contains(verbs, keyword):
		case options == "inline":
			s.inline(f, keyword)
		case name != "" && name != "-" && (only == nil || slices.Contains(only, name)):
			f.name = name
			s.add(f, keyword)
		}
	}
	return s
}

func (s *shape) add(f field, keyword string) {
	if enum, ok := f.Tag.Lookup(keyword + "-enum"); ok {
		f.tag("enum", enum)
	}
	for f.Type.Kind() == reflect.Pointer {
		f.Type = f.Type.Elem()
	}
	of := f.Type
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() == reflect.Struct && of != durationType && of != lagType && of != stepType {
		inner := shapeOf(of, f.name, f.words("only")...)
		inner.inherit(f)
		f.inner = &inner
	}
	s.fields = append(s.fields, f)
}

// inline adds the fields of a struct, or the keys of a map, that have no mapping of their own.
func (s *shape) inline(f field, keyword string) {
	if f.Type.Kind() == reflect.Struct {
		inner := shapeOf(f.Type, keyword, f.words("only")...)
		inner.inherit(f)
		for _, in := range inner.fields {
			in.Index = append(slices.Clone(f.Index), in.Index...)
			s.fields = append(s.fields, in)
		}
		return
	}
	keys := f.words("keys")
	s.open = keys == nil
	for _, key := range keys {
		one := f
		one.name, one.key, one.Type = key, key, f.Type.Elem()
		one.tag("yaml", key)
		s.add(one, keyword)
	}
}

// inherit marks the fields of what is a target.
func (s *shape) inherit(f field) {
	for i := range s.fields {
		s.fields[i].tag("target", f.Tag.Get("target"))
	}
}

// tag puts a value before those that the tags have.
func (f *field) tag(key, value string) {
	f.Tag = reflect.StructTag(fmt.Sprintf("%s:%q %s", key, value, f.Tag))
}

// words are the parts of a tag; nil if there is none.
func (f field) words(tag string) []string {
	if words := f.Tag.Get(tag); words != "" {
		return strings.Split(words, ",")
	}
	return nil
}

// dependsOn is the other field that a tag with or without names, and its values there; nil: any.
func (f field) dependsOn(tag string) (name string, values []string) {
	name, list, some := strings.Cut(f.Tag.Get(tag), "=")
	if some {
		values = strings.Split(list, ",")
	}
	return name, values
}

func (f field) has(tag string) bool { return f.Tag.Get(tag) != "" }

// mapping reports whether a field is a mapping with fields of its own.
func (f field) mapping() bool { return f.inner != nil && f.Type.Kind() == reflect.Struct }

// of is the field's value in a struct; invalid if there is none.
func (f field) of(v reflect.Value) reflect.Value {
	v = v.FieldByIndex(f.Index)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if f.key != "" {
		return v.MapIndex(reflect.ValueOf(f.key))
	}
	return v
}

func (s shape) named(name string) (field, bool) {
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return s.fields[i], true
}

func (s shape) names() []string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	return names
}

// walk visits every field that is no mapping with its value, which is invalid if there is none.
func (s shape) walk(v reflect.Value, visit func(field, reflect.Value)) {
	for _, f := range s.fields {
		if value := f.of(v); f.mapping() && value.IsValid() {
			f.inner.walk(value, visit)
		} else {
			visit(f, value)
		}
	}
}

// tagOf are the words of a tag of a Go field.
func tagOf[T any](goField, tag string) []string {
	f, _ := reflect.TypeFor[T]().FieldByName(goField)
	return field{StructField: f}.words(tag)
}

var (
	durationType = reflect.TypeFor[Duration]()
	lagType      = reflect.TypeFor[Lag]()
	stepType     = reflect.TypeFor[Step]()
)
