package scenario

import (
	"reflect"
	"slices"
	"sync"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Verb names an action.
type Verb string

// Action is what a step does to the environment. Each verb has a type of its own, in a file of its own, with all that is known of the
// verb: its arguments, their rules, its words, what it acts on and what ends its effect.
type Action interface {
	Verb() Verb
	// Describe is the action as a sentence: "link reporter → apiserver of cp-2: slow (delay 2I)".
	Describe() string
	fields() []field
}

// What an action may have besides.
type (
	// checked actions have rules that involve more than one argument, or the topology.
	checked interface{ check(v *validation, at place) }
	// targeted actions act on a plugin, a process or a link. The checker reads the target from the history.
	targeted interface{ target(nodes []string) string }
	// selecting actions select plugins or processes, of one API server.
	selecting interface{ selector() *Selector }
	// Lasting actions have an effect that lasts until another action ends it.
	Lasting interface {
		Action
		// Lasts reports whether this one has an effect that lasts: one that restores has none.
		Lasts() bool
		// EndedBy reports whether another action ends the effect, all of it.
		EndedBy(Action) bool
	}
	// Undoable actions are taken back by another action.
	Undoable interface {
		Action
		// Undo is that action; nil: there is nothing to take back.
		Undo() Action
	}
	// harmful actions do harm: a kind of fault in the coverage of the catalogue.
	harmful interface{ harm() string }
)

// definition is a verb of the file format.
type definition struct {
	verb  Verb
	about string // what it does, in the fewest words, for editors
	make  func() Action
}

// definitions are all verbs, in the order in which they are shown.
var definitions = sync.OnceValue(func() []definition {
	return []definition{
		{VerbInject, "puts a fault in force on plugins", func() Action { return &Inject{} }},
		{VerbRelease, "ends faults of plugins", func() Action { return &Release{} }},
		{VerbRotate, "a new KEK in the remote KMS; each plugin notices with its own lag", func() Action { return &Rotate{} }},
		{VerbKMS, "changes a KEK, or a node's access to the remote KMS", func() Action { return &KMS{} }},
		processVerb(VerbStart, "starts what was stopped or killed"),
		processVerb(VerbStop, "ends processes and waits for them"),
		processVerb(VerbKill, "kills processes"),
		processVerb(VerbPause, "lets processes stand still"),
		processVerb(VerbSilence, "cuts processes off from all other machines, while they go on"),
		processVerb(VerbResume, "lets them go on"),
		processVerb(VerbRestart, "ends and starts processes, or kills and starts them"),
		{VerbLink, "breaks a link of the network, or restores it", func() Action { return &Link{} }},
		{VerbRefuse, "lets API servers refuse requests of reporters or aggregators", func() Action { return &Refuse{} }},
		{VerbWatches, "lets the watches of aggregators be late, or ends them", func() Action { return &Watches{} }},
		{VerbClock, "sets the clock of a node or of the aggregators", func() Action { return &Clock{} }},
		{VerbCredential, "lets the credential of a reporter expire, or renews it, or changes that of the plugins", func() Action { return &Credential{} }},
		{VerbNode, "removes, adds or replaces a node", func() Action { return &Node{} }},
		{VerbEncryption, "changes the cluster's encryption type, or its plugins", func() Action { return &Encryption{} }},
		{VerbAPIServer, "writes the configuration that the API server operator acts upon", func() Action { return &APIServer{} }},
		{VerbRollback, "replaces a pod of an API server by one of another revision", func() Action { return &Rollback{} }},
		{VerbData, "writes secrets, or reads them all back", func() Action { return &Data{} }},
		{VerbCondition, "sets or deletes somebody else's condition on the operator CR", func() Action { return &Condition{} }},
		{VerbEntries, "fills the typed list with entries of nodes that do not exist", func() Action { return &Entries{} }},
		{VerbAttempt, "a request under a reporter's identity", func() Action { return &Attempt{} }},
	}
})

// Verbs are all actions, in the order in which they are shown.
func Verbs() (verbs []Verb) {
	for _, d := range definitions() {
		verbs = append(verbs, d.verb)
	}
	return verbs
}

// NewAction is an action without arguments; nil if there is no such verb.
func NewAction(verb Verb) Action {
	i := slices.IndexFunc(definitions(), func(d definition) bool { return d.verb == verb })
	if i < 0 {
		return nil
	}
	return definitions()[i].make()
}

// Selector picks nodes, plugins, processes or links. Empty fields match all.
type Selector struct {
	// Node is a name ("cp-2"), "any" (the engine draws one with the run's seed, the same for all steps), or "all"/"".
	Node string
	// KeyID picks plugins; empty matches every plugin of the node.
	KeyID string
	// Role picks processes: etcd, apiserver, plugin, reporter, aggregator, operator, remote-kms, load-balancer; or more than one process:
	// node, pod.
	Role string
	// APIServer picks whose plugin or process it is, of those that the topology has; empty is kube-apiserver.
	APIServer string
	// Instance picks one of several aggregators: "1", "2", "leader", "standby".
	Instance string
	// From and To pick links: client|aggregator|harness → load-balancer, load-balancer → apiserver,
	// reporter → apiserver, apiserver → etcd.
	From, To string
}

// covers reports whether s picks all that o picks.
func (s Selector) covers(o Selector) bool {
	any := func(wide, narrow string) bool { return wide == "" || wide == NodeAll || wide == narrow }
	return any(s.Node, o.Node) && any(s.KeyID, o.KeyID) && s.Role == o.Role && any(s.Instance, o.Instance) && s.From == o.From && s.To == o.To
}

// clone is a shallow copy: what it points to is replaced, never changed.
func clone(a Action) Action {
	c := reflect.New(reflect.TypeOf(a).Elem())
	c.Elem().Set(reflect.ValueOf(a).Elem())
	return c.Interface().(Action)
}

// RenameNodes is the action with other names of the nodes that it names.
func RenameNodes(a Action, name func(string) string) Action {
	a = clone(a)
	renameNodes(a.fields(), name)
	return a
}

// ForAPIServer is the action for plugins or processes of an API server; empty: of kube-apiserver.
func ForAPIServer(a Action, name string) Action {
	a = clone(a)
	if s, ok := a.(selecting); ok {
		s.selector().APIServer = name
	}
	return a
}

// Nodes are the names of nodes in the action, and NodeAny or NodeAll where they stand for names.
func Nodes(a Action) (names []string) {
	RenameNodes(a, func(n string) string {
		if n != "" {
			names = append(names, n)
		}
		return n
	})
	return names
}

// Selected is what an action selects of an API server's plugins or processes; zero: it selects none.
func Selected(a Action) Selector {
	if s, ok := a.(selecting); ok {
		return *s.selector()
	}
	return Selector{}
}

// OfCluster reports whether an action acts on every API server: the cluster has one remote KMS and one encryption configuration, and data
// are written through each.
func OfCluster(a Action) bool {
	_, ok := a.(interface{ ofCluster() })
	return ok
}

// OfAPIServer is the further API server whose plugin, or process, an action is aimed at; empty: kube-apiserver's, or nobody's.
func OfAPIServer(a Action) string {
	if name := Selected(a).APIServer; name != history.KubeAPIServer {
		return name
	}
	return ""
}

// Target is what an action acts on, as the history shows it: "plugin cp-1/2", "process reporter/cp-3", "link reporter to apiserver cp-1";
// empty if it acts on the cluster.
func Target(a Action, nodes []string) string {
	at := ""
	if t, ok := a.(targeted); ok {
		at = t.target(nodes)
	}
	if of := OfAPIServer(a); of != "" {
		at += " of " + of
	}
	return at
}

// Params are the arguments of an action by the names of the file format, without those that are its target: text, int, bool, []string,
// map[string]string, or what stands in the file where that may be anything. Durations are texts.
func Params(a Action) map[string]any {
	out := map[string]any{}
	for _, f := range a.fields() {
		if f.target || f.shape != nil && f.kind == kindMapping && f.open == nil {
			continue
		}
		v := f.get()
		if v == nil && f.required && f.kind == kindInt {
			v = 0
		}
		if v != nil {
			out[f.name] = v
		}
	}
	if o, ok := a.(interface{ openParams() map[string]any }); ok {
		for name, v := range o.openParams() {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Harm is the kind of fault that an action is, such as link-cut; empty if it does no harm.
func Harm(a Action) string {
	if h, ok := a.(harmful); ok {
		return h.harm()
	}
	return ""
}

// Resolve gives the action with every duration resolved. faults knows which parameters of a fault are durations; nil: none but "for".
func Resolve(a Action, t contract.Timing, faults FaultChecker) (Action, error) {
	a = clone(a)
	for _, f := range a.fields() {
		if f.resolve == nil {
			continue
		}
		if err := f.resolve(t); err != nil {
			return nil, wrapName(f.name, err)
		}
	}
	if i, ok := a.(*Inject); ok {
		return i, i.resolveParams(t, faults)
	}
	return a, nil
}
