package scenario

import "slices"

// SchemaFile is the schema's name in the folder docs, and in the first line of every file of the catalogue.
const SchemaFile = "scenario.schema.json"

// Schema is the file format as a JSON schema (draft 2020-12), for editors: fields, words and bounds, with what they mean. It is made
// from the table that the parser uses, so the two cannot differ. It accepts every good file, and some that the rules refuse, because
// they depend on more than one value: a node that the topology does not have, an expression. faults are the names that inject knows.
func Schema(faults []string) map[string]any {
	s := schema{faults: faults}
	root := s.of(fileShape(), "")
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
	case name == "fault":
		return wordSchema(s.faults)
	case sh.form != nil:
		return map[string]any{"type": "string", "pattern": sh.form.String()}
	case sh.words != nil:
		return wordSchema(sh.words)
	}
	return map[string]any{"type": "string"}
}

func wordSchema(of []string) map[string]any {
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
	case "lag":
		return map[string]any{"anyOf": []any{duration, map[string]any{"type": "object", "additionalProperties": duration}}}
	default:
		return map[string]any{"$ref": "#/$defs/step"}
	}
}

// step is one alternative per verb, so that an editor offers the fields of the verb that was written.
func (s schema) step() map[string]any {
	var all []any
	for _, word := range verbs() {
		verb := required(word, verbShape(word)).says(aboutVerb(word))
		fields := []field{verb, optional(wordAt, scalar(kindTime)).says("not before this time from the beginning of the steps"),
			optional(wordAfter, scalar(kindTime)).says("this long after the previous step")}
		if bound := boundOf(word); bound != "" {
			fields = append(fields, required(bound, scalar(kindTime)).says("for how long it is watched"), origin())
		}
		all = append(all, s.mapping(mapping("", fields...)))
	}
	return map[string]any{"anyOf": all}
}

func durationSchema() map[string]any {
	const one = `\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:I|J|R|W|A|ms|s|m)|I|J|R|W|A|detection|recovery|staleness|cleanup)\s*`
	return map[string]any{"type": "string", "pattern": "^" + one + `(?:\+` + one + ")*$",
		"description": "a sum of terms such as 4I + A, 2.5I, 500ms, detection + 4s; I is the reporters' interval"}
}

// aboutVerb says what a verb does, in the fewest words.
func aboutVerb(word string) string {
	about := map[string]string{
		string(VerbInject): "puts a fault in force on plugins", string(VerbRelease): "ends faults of plugins",
		string(VerbRotate): "a new KEK in the remote KMS; each plugin notices with its own lag", string(VerbKMS): "changes a KEK, or a node's access to the remote KMS",
		string(VerbStart): "starts what was stopped or killed", string(VerbStop): "ends processes and waits for them", string(VerbKill): "kills processes",
		string(VerbPause): "lets processes stand still", string(VerbResume): "lets them go on", string(VerbRestart): "ends and starts processes, or kills and starts them",
		string(VerbLink): "breaks a link of the network, or restores it", string(VerbRefuse): "lets API servers refuse requests of reporters or aggregators",
		string(VerbWatches): "lets the watches of aggregators be late, or ends them", string(VerbCredential): "lets the credential of a reporter expire, or renews it", string(VerbClock): "sets the clock of a node or of the aggregators", string(VerbNode): "removes, adds or replaces a node",
		string(VerbEncryption): "changes the cluster's encryption type, or its plugins", string(VerbAPIServer): "writes the configuration that the API server operator acts upon",
		string(VerbData):      "writes secrets, or reads them all back",
		string(VerbCondition): "sets or deletes somebody else's condition on the operator CR", string(VerbEntries): "fills the typed list with entries of nodes that do not exist", string(VerbAttempt): "a request under a reporter's identity",
		wordExpect: "becomes true within a time", wordHolds: "is true now and stays true for a time", wordNever: "stays false for a time",
		wordParallel: "steps that go on at the same time", wordRepeat: "steps that are done several times", wordWait: "lets time pass; the invariants are judged meanwhile",
	}
	return about[word]
}
