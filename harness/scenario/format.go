package scenario

// The file format as a table. What depends on more than one value is in the rules (validate.go and its neighbours).

func scalar(k kind) *shape { return &shape{kind: k} }

func listOf(item *shape) *shape { return &shape{kind: kindList, item: item} }

func mapping(what string, fields ...field) *shape {
	if what != "" {
		what = " in " + what
	}
	return &shape{kind: kindMapping, fields: fields, what: what}
}

func optional(name string, s *shape) field { return field{name: name, shape: s} }

func required(name string, s *shape) field { return field{name: name, shape: s, required: true} }

// file is the shape of a whole document.
func fileShape() *shape {
	return mapping("the scenario",
		required("apiVersion", scalar(kindText)),
		required("kind", scalar(kindText)),
		required("metadata", mapping("metadata",
			required("name", scalar(kindText)),
			required("title", scalar(kindText)),
			required("area", scalar(kindText)),
			optional("labels", listOf(scalar(kindText))),
			optional("covers", listOf(scalar(kindText))),
		)),
		required("spec", mapping("spec",
			optional("topology", mapping("topology",
				optional("controlPlanes", scalar(kindInt)),
				optional("keyIDs", listOf(scalar(kindText))),
				optional("aggregators", scalar(kindInt)),
				optional("start", scalar(kindText)),
			)),
			optional("contract", scalar(kindText)),
			optional("operator", scalar(kindText)),
			optional("excused", listOf(mapping("excused",
				required("invariant", scalar(kindText)),
				required("reason", scalar(kindText)),
			))),
			required("steps", listOf(stepShape())),
		)),
	)
}

// stepShape decides by the verb, so that a message can say what the fields of that verb are.
func stepShape() *shape { return &shape{custom: checkStep} }

// Words of a step that are no action.
const (
	wordExpect   = "expect"
	wordHolds    = "holds"
	wordNever    = "never"
	wordParallel = "parallel"
	wordRepeat   = "repeat"
	wordWait     = "wait"
	wordWithin   = "within"
	wordFor      = "for"
	wordAt       = "at"
	wordAfter    = "after"
)

// verbs are the words that say what a step does; a step has exactly one.
func verbs() []string {
	words := []string{}
	for _, v := range Verbs() {
		words = append(words, string(v))
	}
	return append(words, wordExpect, wordHolds, wordNever, wordParallel, wordRepeat, wordWait)
}

// verbShape is the value of a verb.
func verbShape(word string) *shape {
	text, duration, integer := scalar(kindText), scalar(kindTime), scalar(kindInt)
	switch word {
	case wordExpect, wordHolds, wordNever:
		return text
	case wordWait:
		return duration
	case wordParallel:
		return listOf(stepShape())
	case wordRepeat:
		return mapping(wordRepeat, required("times", integer), required("steps", listOf(stepShape())))
	}
	return argumentShape(Verb(word))
}

// argumentShape is the value of an action.
func argumentShape(verb Verb) *shape {
	text, duration, integer := scalar(kindText), scalar(kindTime), scalar(kindInt)
	what := string(verb)
	plugin := mapping("plugin", optional("node", text), optional("keyID", text))
	process := []field{required("role", text), optional("node", text), optional("keyID", text), optional("instance", &shape{custom: checkInstance})}
	switch verb {
	case VerbInject:
		s := mapping(what, required("plugin", plugin), required("fault", text), optional("method", text))
		s.open = scalar(kindAny) // the fault's own parameters
		return s
	case VerbRelease:
		return mapping(what, required("plugin", plugin), optional("fault", text), optional("method", text))
	case VerbRotate:
		return mapping(what, optional("lag", &shape{custom: checkLag}))
	case VerbKMS:
		return mapping(what, required("op", text), optional("node", text), optional("kek", integer))
	case VerbRestart:
		return mapping(what, append(process, optional("with", text))...)
	case VerbStart, VerbStop, VerbKill, VerbPause, VerbResume:
		return mapping(what, process...)
	case VerbLink:
		return mapping(what, required("from", text), required("to", text), optional("node", text), required("mode", text), optional("delay", duration))
	case VerbClock:
		return mapping(what, optional("node", text), optional("role", text), required("mode", text), optional("by", duration))
	case VerbNode:
		return mapping(what, optional("remove", text), optional("add", text), optional("replace", text), optional("with", text), optional("reporter", text))
	case VerbEncryption:
		return mapping(what, required("type", text), optional("keyIDs", listOf(text)))
	case VerbData:
		return mapping(what, required("op", text), optional("count", integer), optional("size", integer))
	case VerbCondition:
		return mapping(what, required("type", text), optional("status", text), optional("reason", text), optional("message", text),
			optional("manager", text), optional("delete", scalar(kindBool)))
	default: // VerbAttempt
		return mapping(what, required("as", text), required("verb", text), optional("resource", text), optional("subresource", text),
			optional("namespace", text), optional("name", text), optional("node", text), optional("body", scalar(kindAny)), required("expect", text))
	}
}
