package scenario

import "slices"

// SchemaFile is the schema's name in the folder docs, and in the first line of every file of the catalogue.
const SchemaFile = "scenario.schema.json"

// Schema is the file format as a JSON schema (draft 2020-12), for editors: fields, words and bounds, with what they mean. It is made
// from the table that the parser uses, so the two cannot differ. It accepts every good file, and some that the rules refuse, because
// they depend on more than one value: a node that the topology does not have, an expression. faults are the names that inject knows.
func Schema(faults []string) map[string]any {
	s := schema{faults: faults}
	root := s.of(mapping("", new(Scenario).fields()...), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "kmsharness scenario"
	root["$defs"] = map[string]any{"step": s.step(), "duration": durationSchema()}
	return root
}

type schema struct{ faults []string }

// of is the schema of a shape that is the value of the field name.
func (s schema) of(sh *shape, name string) map[string]any {
	switch {
	case sh.custom != nil:
		return s.custom(name)
	case sh.kind == kindMapping:
		return s.mapping(sh)
	case sh.kind == kindList:
		list := map[string]any{"type": "array", "items": s.of(sh.item, "step")}
		if sh.item.custom == nil {
			list["uniqueItems"] = true // of names; steps may repeat
		}
		return bounded(list, sh, "minItems", "maxItems")
	case sh.kind == kindInt:
		return bounded(map[string]any{"type": "integer"}, sh, "minimum", "maximum")
	case sh.kind == kindBool:
		return map[string]any{"type": "boolean"}
	case sh.kind == kindTime:
		return map[string]any{"$ref": "#/$defs/duration"}
	case sh.kind == kindAny:
		return map[string]any{}
	case name == "fault" && sh.keywords == nil:
		return keywordSchema(s.faults)
	case sh.form != nil:
		return map[string]any{"type": "string", "pattern": sh.form.String()}
	case sh.keywords != nil:
		return keywordSchema(sh.keywords)
	}
	return map[string]any{"type": "string"}
}

func keywordSchema(of []string) map[string]any {
	return map[string]any{"type": "string", "enum": slices.Clone(of)}
}

func bounded(out map[string]any, sh *shape, least, most string) map[string]any {
	if sh.most > 0 {
		out[least], out[most] = sh.least, sh.most
	}
	return out
}

func (s schema) mapping(sh *shape) map[string]any {
	fields, must := map[string]any{}, []string{}
	for _, f := range sh.fields {
		value := s.of(f.shape, f.name)
		if f.about != "" {
			value["description"] = f.about
		}
		fields[f.name] = value
		if f.required {
			must = append(must, f.name)
		}
	}
	out := map[string]any{"type": "object", "properties": fields, "additionalProperties": sh.open != nil}
	if len(must) > 0 {
		out["required"] = must
	}
	return out
}

// custom is what the parser checks in a way of its own.
func (s schema) custom(name string) map[string]any {
	duration := map[string]any{"$ref": "#/$defs/duration"}
	switch name {
	case "instance":
		return map[string]any{"enum": []any{1, 2, 3, "1", "2", "3", "leader", "standby"}}
	case "to":
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"type": "string", "pattern": toRevision.String()}}}
	case "lag":
		return map[string]any{"anyOf": []any{duration, map[string]any{"type": "object", "additionalProperties": duration}}}
	default:
		return map[string]any{"$ref": "#/$defs/step"}
	}
}

// step is one alternative per verb, so that an editor offers the fields of the verb that was written.
func (s schema) step() map[string]any {
	var all []any
	for _, keyword := range keywords() {
		all = append(all, s.mapping(mapping("", stepFields(keyword)...)))
	}
	return map[string]any{"anyOf": all}
}

func durationSchema() map[string]any {
	const one = `\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:I|J|R|W|A|ms|s|m)|I|J|R|W|A|detection|recovery|staleness|cleanup)\s*`
	return map[string]any{"type": "string", "pattern": "^" + one + `(?:\+` + one + ")*$",
		"description": "a sum of terms such as 4I + A, 2.5I, 500ms, detection + 4s; I is the reporters' interval"}
}
