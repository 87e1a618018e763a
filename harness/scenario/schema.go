package scenario

import (
	"reflect"

	"github.com/swaggest/jsonschema-go"
)

// SchemaFile is the schema's name in the folder docs, and in the first line of every file of the catalogue.
const SchemaFile = "scenario.schema.json"

// Schema is the file format as a JSON schema (draft 7), for editors: fields, words and bounds, with what they mean. It is made from the
// tags that the parser goes by, so the two cannot differ. It accepts every good file, and some that the rules refuse, because they depend
// on more than one value: a node that the topology does not have, an expression.
func (p *Parser) Schema() (jsonschema.Schema, error) {
	s := schema{parser: p}
	root, err := s.of(shapeOf(reflect.TypeFor[file](), "the scenario"))
	if err != nil {
		return root, err
	}
	var step jsonschema.Schema // one alternative for each verb, so that an editor offers the fields of the one that was written
	for _, keyword := range p.keywords {
		one, err := s.of(p.steps[keyword])
		if err != nil {
			return root, err
		}
		step.AnyOf = append(step.AnyOf, one.ToSchemaOrBool())
	}
	root.WithSchema("http://json-schema.org/draft-07/schema#").WithTitle("kmsharness scenario")
	root.WithDefinitionsItem("step", step.ToSchemaOrBool()).WithDefinitionsItem("duration", durationSchema().ToSchemaOrBool())
	return root, nil
}

type schema struct {
	jsonschema.Reflector
	parser *Parser
}

func (s *schema) of(sh shape) (jsonschema.Schema, error) {
	return s.Reflect(sh.virtual(), jsonschema.PropertyNameTag("yaml"), jsonschema.InlineRefs, jsonschema.InterceptProp(s.refine))
}

func reference(name string) jsonschema.Schema {
	s := jsonschema.Schema{}
	return *s.WithRef("#/definitions/" + name)
}

// virtual is a shape as the library takes it.
func (s shape) virtual() jsonschema.Struct {
	further := reflect.StructTag(`additionalProperties:"false"`)
	if s.open {
		further = `additionalProperties:"true"`
	}
	out := jsonschema.Struct{DefName: s.what, Fields: []jsonschema.Field{{Name: "_", Value: struct{}{}, Tag: further}}}
	for _, f := range s.fields {
		out.Fields = append(out.Fields, jsonschema.Field{Name: f.Name, Value: f.sample(), Tag: f.Tag})
	}
	return out
}

// sample is a value that the library makes the schema of the field from.
func (f field) sample() any {
	switch {
	case f.mapping():
		return f.inner.virtual()
	case f.inner != nil:
		return []jsonschema.Struct{f.inner.virtual()}
	case f.Type == durationType:
		return reference("duration")
	case f.Type == lagType: // one for all nodes, or one for each
		one, each := reference("duration"), jsonschema.Schema{}
		each.WithType(jsonschema.Object.Type()).WithAdditionalProperties(one.ToSchemaOrBool())
		return jsonschema.Schema{AnyOf: []jsonschema.SchemaOrBool{one.ToSchemaOrBool(), each.ToSchemaOrBool()}}
	case f.Type == reflect.SliceOf(stepType):
		return []jsonschema.Schema{reference("step")}
	case f.Type.Kind() == reflect.Interface:
		return jsonschema.Schema{}
	}
	return reflect.New(f.Type).Elem().Interface()
}

// refine puts in what the library does not take from tags.
func (s *schema) refine(p jsonschema.InterceptPropParams) error {
	if !p.Processed {
		return nil
	}
	known := func(words []string) {
		for _, w := range words {
			p.PropertySchema.Enum = append(p.PropertySchema.Enum, w)
		}
	}
	p.PropertySchema.RemoveType(jsonschema.Null) // a field is given or left out
	switch of := p.PropertySchema; {
	case p.Name == "fault" && s.parser.Faults != nil:
		known(s.parser.Faults.Names())
	case p.Name == "invariant":
		known(s.parser.Invariants)
	case p.Field.Tag.Get("format") == "int-or-string":
		of.WithType(jsonschema.Type{SliceOfSimpleTypeValues: []jsonschema.SimpleType{jsonschema.Integer, jsonschema.String}})
	case of.Items != nil && of.Items.SchemaOrBool != nil: // these are about the items
		item := of.Items.SchemaOrBool.TypeObject
		item.Pattern, item.Enum, of.Pattern, of.Enum = of.Pattern, of.Enum, nil, nil
	}
	return nil
}

func durationSchema() *jsonschema.Schema {
	const one = `\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:I|J|R|W|A|ms|s|m)|I|J|R|W|A|detection|recovery|staleness|cleanup)\s*`
	return (&jsonschema.Schema{}).WithType(jsonschema.String.Type()).WithPattern("^" + one + `(?:\+` + one + ")*$").
		WithDescription("a sum of terms such as 4I + A, 2.5I, 500ms, detection + 4s; I is the reporters' interval")
}
