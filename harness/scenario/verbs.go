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

// Definition is a verb of the file format.
type Definition struct {
	Action Action // without arguments
	About  string // what it does, in the fewest words, for editors
}

// Verbs are those of another module, in addition to the built-in ones. The zero value has the built-in ones alone.
type Verbs []Definition

// all are all verbs, in the order in which they are shown.
func (v Verbs) all() []Definition {
	return append([]Definition{
		{&Inject{}, "puts a fault in force on plugins"},
		{&Release{}, "ends faults of plugins"},
		{&Rotate{}, "a new KEK in the remote KMS; each plugin notices with its own lag"},
		{&KMS{}, "changes a KEK, or a node's access to the remote KMS"},
		{&Process{Do: VerbStart}, "starts what was stopped or killed"},
		{&Process{Do: VerbStop}, "ends processes and waits for them"},
		{&Process{Do: VerbKill}, "kills processes"},
		{&Process{Do: VerbPause}, "lets processes stand still"},
		{&Process{Do: VerbSilence}, "cuts processes off from all other machines, while they go on"},
		{&Process{Do: VerbResume}, "lets them go on"},
		{&Process{Do: VerbRestart}, "ends and starts processes, or kills and starts them"},
		{&Link{}, "breaks a link of the network, or restores it"},
		{&Refuse{}, "lets API servers refuse requests of reporters or aggregators"},
		{&Watches{}, "lets the watches of aggregators be late, or ends them"},
		{&Clock{}, "sets the clock of a node or of the aggregators"},
		{&Credential{}, "lets the credential of a reporter expire, or renews it, or changes that of the plugins"},
		{&Node{}, "removes, adds or replaces a node"},
		{&Encryption{}, "changes the cluster's encryption type, or its plugins"},
		{&APIServer{}, "writes the configuration that the API server operator acts upon"},
		{&Rollback{}, "replaces a pod of an API server by one of another revision"},
		{&Data{}, "writes secrets, or reads them all back"},
		{&Condition{}, "sets or deletes somebody else's condition on the operator CR"},
		{&Entries{}, "fills the typed list with entries of nodes that do not exist"},
		{&Attempt{}, "a request under a reporter's identity"},
	}, v...)
}

// find returns the definition of a verb.
func (v Verbs) find(verb Verb) (Definition, bool) {
	all := v.all()
	i := slices.IndexFunc(all, func(d Definition) bool { return VerbOf(d.Action) == verb })
	if i < 0 {
		return Definition{}, false
	}
	return all[i], true
}

// Names are those of all verbs, in the order in which they are shown.
func (v Verbs) Names() (names []Verb) {
	for _, d := range v.all() {
		names = append(names, VerbOf(d.Action))
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
	if d, ok := v.find(Verb(keyword)); ok {
		f := field{name: keyword}
		f.StructField, _ = t.FieldByName("Action") // of the step in it
		f.Type = reflect.TypeOf(d.Action)
		f.tag("description", d.About)
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
			if d, ok := v.find(Verb(n.Content[j].Value)); ok {
				s.Action = clone(d.Action)
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
