package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Verb names an action in the file format.
type Verb string

// Verbs of Process. Every other verb has a type of its own.
const (
	VerbStart   Verb = "start"
	VerbStop    Verb = "stop" // SIGTERM and wait
	VerbKill    Verb = "kill" // SIGKILL
	VerbPause   Verb = "pause"
	VerbSilence Verb = "silence"
	VerbResume  Verb = "resume"  // after pause and silence
	VerbRestart Verb = "restart" // stop and start, or as Process.With says
)

// VerbOf is the verb of an action: what its method Verb says, where one type has several verbs, or the name of its type in small letters.
func VerbOf(a Action) Verb {
	if v, ok := a.(interface{ Verb() Verb }); ok {
		return v.Verb()
	}
	return Verb(strings.ToLower(reflect.TypeOf(a).Elem().Name()))
}

// Verbs are those of another module, in addition to the built-in ones: an action of each, without arguments. The zero value has the built-in ones alone.
type Verbs []Action

// all are all verbs, in the order in which they are shown.
func (v Verbs) all() []Action {
	return append([]Action{
		&Inject{},
		&Release{},
		&Rotate{},
		&KMS{},
		&Process{Do: VerbStart},
		&Process{Do: VerbStop},
		&Process{Do: VerbKill},
		&Process{Do: VerbPause},
		&Process{Do: VerbSilence},
		&Process{Do: VerbResume},
		&Process{Do: VerbRestart},
		&Link{},
		&Refuse{},
		&Watches{},
		&Serving{},
		&Clock{},
		&Credential{},
		&Node{},
		&Encryption{},
		&APIServer{},
		&Rollback{},
		&Data{},
		&Condition{},
		&Entries{},
		&EncryptionHealth{},
		&Column{},
		&Memory{},
		&Attempt{},
	}, v...)
}

// find returns the action of a verb; nil if there is no such verb.
func (v Verbs) find(verb Verb) Action {
	for _, a := range v.all() {
		if VerbOf(a) == verb {
			return a
		}
	}
	return nil
}

// Names are those of all verbs, in the order in which they are shown.
func (v Verbs) Names() (names []Verb) {
	for _, a := range v.all() {
		names = append(names, VerbOf(a))
	}
	return names
}

// keywords are what a step can be: a verb, or one of the others; it has exactly one. A keyword that stands for two things is an error.
func (v Verbs) keywords() ([]string, error) {
	var keywords []string
	for _, verb := range v.Names() {
		keywords = append(keywords, string(verb))
	}
	keywords = append(keywords, "expect", "holds", "never", "parallel", "repeat", "wait")
	for i, k := range keywords {
		if slices.Index(keywords, k) < i {
			return nil, fmt.Errorf("verb %s: there is one of this name", k)
		}
	}
	return keywords, nil
}

// stepShape is the shape of a step with a keyword.
func (v Verbs) stepShape(keyword string) shape {
	t := reflect.TypeFor[stepFile]()
	s := shapeOf(t, keyword)
	if a := v.find(Verb(keyword)); a != nil {
		f := field{name: keyword}
		f.StructField, _ = t.FieldByName("Action") // of the step in it
		f.Type = reflect.TypeOf(a)
		f.tag("description", a.About())
		f.tag("required", "true")
		f.tag("yaml", keyword)
		var action shape
		action.add(f, keyword)
		s.fields = append(action.fields, s.fields...)
	}
	s.what = "a step with " + keyword
	return s
}

// decode reads the actions of the steps of a list. UnmarshalYAML cannot: it does not know the verbs of other modules. It takes what can be decoded; the
// checker has reported the rest.
func (v Verbs) decode(steps []Step, list *yaml.Node) {
	for i := range steps {
		s, n := &steps[i], list.Content[i]
		for j := 0; n.Kind == yaml.MappingNode && j+1 < len(n.Content); j += 2 {
			if a := v.find(Verb(n.Content[j].Value)); a != nil {
				s.Action = clone(a)
				_ = n.Content[j+1].Decode(s.Action)
			}
		}
		if len(s.Parallel) > 0 {
			v.decode(s.Parallel, childOf(n, "parallel"))
		}
		if s.Repeat != nil && len(s.Repeat.Steps) > 0 {
			v.decode(s.Repeat.Steps, childOf(childOf(n, "repeat"), "steps"))
		}
	}
}
