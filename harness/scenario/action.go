package scenario

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Action is what a step does to the environment: a pointer to a struct, whose tags describe its arguments (shape). Each verb has a type in a file of
// its own, with all that is known of the verb: its arguments, their rules, what it acts on and what ends its effect.
type Action interface {
	// About says what the verb does, in the fewest words, for editors.
	About() string
}

// What an action may have besides.
type (
	// Validator is an action with rules that its tags cannot express: on more than one argument, or on the scenario.
	Validator interface{ Validate(Validation) }
	// Targeted is an action that acts on what the tag target does not describe. The checker reads the target from the history. nodes are all that
	// there are.
	Targeted interface{ Target(nodes []string) string }
	// Lasting is an action whose effect other verbs end. That of others is ended as the tag undo says.
	Lasting interface {
		Lasts() bool
		EndedBy(Action) bool
	}
	// Harmful is an action that does harm of a kind that its verb and mode do not name; empty: it does none.
	Harmful interface{ Harm() string }
	// ClusterWide is an action that acts on every API server: the cluster has one remote KMS and one encryption configuration, and data are
	// written through each.
	ClusterWide interface{ ClusterWide() }
)

// Selector picks nodes, plugins or processes. Empty fields match all.
type Selector struct {
	// Role picks processes: etcd, apiserver, plugin, reporter, aggregator, operator, remote-kms, load-balancer; or more than one process:
	// node, pod.
	Role string `yaml:"role,omitempty" required:"true" enum:"reporter,plugin,apiserver,pod,node,aggregator,operator,etcd,remote-kms,load-balancer" silence-enum:"reporter,aggregator,node"`
	// APIServer picks whose plugin or process it is, of those that the topology has; empty is kube-apiserver.
	APIServer string `yaml:"apiServer,omitempty" refers:"apiServer" enum:"kube-apiserver,openshift-apiserver,oauth-apiserver" with:"role=reporter,plugin,apiserver,aggregator,operator,pod"`
	// Node is a name ("cp-2"), "any" (the engine draws one with the run's seed, the same for all steps), or "all"/"".
	Node string `yaml:"node,omitempty" refers:"nodes" with:"role=reporter,plugin,apiserver,pod,node"`
	// KeyID picks plugins; empty matches every plugin of the node.
	KeyID string `yaml:"keyID,omitempty" refers:"keyID" with:"role=plugin"`
	// Pod picks those of one pod of an aggregated API server on the node; empty matches both.
	Pod string `yaml:"pod,omitempty" enum:"first,second" with:"role=pod" description:"pod of an aggregated API server on its node: first, or second, which is there from its start to its stop; default both"`
	// Instance picks one of several aggregators: "1", "2", "leader", "standby".
	Instance string `yaml:"instance,omitempty" format:"int-or-string" pattern:"^([123]|leader|standby)$" minimum:"1" maximum:"3" with:"role=aggregator"`
}

func (s Selector) covers(o Selector) bool {
	return covers(s.Node, o.Node) && covers(s.Pod, o.Pod) && covers(s.KeyID, o.KeyID) && covers(s.Instance, o.Instance) && s.Role == o.Role
}

// clone is a shallow copy: what it points to is replaced, never changed.
func clone(a Action) Action {
	c := reflect.New(reflect.TypeOf(a).Elem())
	c.Elem().Set(reflect.ValueOf(a).Elem())
	return c.Interface().(Action)
}

// walk visits every argument of an action, which it may change.
func walk(a Action, visit func(field, reflect.Value)) {
	shapeOf(reflect.TypeOf(a).Elem(), string(VerbOf(a))).walk(reflect.ValueOf(a).Elem(), visit)
}

// RenameNodes is the action with other names of the nodes that it names.
func RenameNodes(a Action, name func(string) string) Action {
	a = clone(a)
	walk(a, func(f field, v reflect.Value) {
		switch refers := f.Tag.Get("refers"); {
		case f.Type == lagType:
			v.Addr().Interface().(*Lag).rename(name)
		case refers == "node", refers == "nodes", refers == "newNode":
			v.SetString(name(v.String()))
		}
	})
	return a
}

// ForAPIServer is the action for plugins or processes of an API server; empty: of kube-apiserver.
func ForAPIServer(a Action, name string) Action {
	a = clone(a)
	selectorOf(a).APIServer = name
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
func Selected(a Action) Selector { return *selectorOf(a) }

func selectorOf(a Action) *Selector {
	for _, v := range reflect.ValueOf(a).Elem().Fields() {
		if s, ok := v.Addr().Interface().(*Selector); ok {
			return s
		}
	}
	return &Selector{}
}

// OfCluster reports whether an action acts on every API server.
func OfCluster(a Action) bool {
	_, all := a.(ClusterWide)
	return all
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
	if t, ok := a.(Targeted); ok {
		at = t.Target(nodes)
	} else {
		at = selectedTarget(a)
	}
	if of := OfAPIServer(a); of != "" {
		at += " of " + of
	}
	return at
}

// selectedTarget is what the tag target calls it, and what the fields select: "process plugin/cp-1/2".
func selectedTarget(a Action) string {
	var called string
	var selected []string
	walk(a, func(f field, v reflect.Value) {
		if !f.has("target") || f.Tag.Get("refers") == "apiServer" {
			return
		}
		called = f.Tag.Get("target")
		if !v.IsZero() {
			selected = append(selected, v.String())
		}
	})
	return strings.TrimSpace(called + " " + strings.Join(selected, "/"))
}

// Params are the arguments of an action by the names of the file format, without those that are its target: text, int, bool, []string,
// map[string]string, or what stands in the file where that may be anything. Durations are texts.
func Params(a Action) map[string]any {
	out := map[string]any{}
	walk(a, func(f field, v reflect.Value) {
		if v.IsValid() && !v.IsZero() && !f.has("target") {
			out[f.name] = shownParam(v.Interface())
		}
	})
	if i, ok := a.(*Inject); ok {
		for name, v := range i.Params {
			out[name] = shownParam(v)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// shownParam is a parameter as a person writes it.
func shownParam(value any) any {
	switch v := value.(type) {
	case Lag:
		return v.param()
	case Duration:
		return v.String()
	case time.Duration:
		return v.String()
	}
	return value
}

// Resolve gives the action with every duration resolved. faults knows which parameters of a fault are durations; nil: none but "for".
func Resolve(a Action, t contract.Timing, faults FaultChecker) (Action, error) {
	a = clone(a)
	var failed error
	walk(a, func(f field, v reflect.Value) {
		if f.Type != durationType && f.Type != lagType || failed != nil {
			return
		}
		if err := v.Addr().Interface().(interface{ resolve(contract.Timing) error }).resolve(t); err != nil {
			failed = fmt.Errorf("%s: %w", f.name, err)
		}
	})
	if i, ok := a.(*Inject); ok && failed == nil {
		failed = i.resolveParams(t, faults)
	}
	if failed != nil {
		return nil, failed
	}
	return a, nil
}

// Line is an action on one line: verb, target, and the parameters in the order of their names, so that two runs read alike.
func Line(a Action, nodes []string) string {
	words := []string{string(VerbOf(a))}
	if target := Target(a, nodes); target != "" {
		words = append(words, target)
	}
	params := Params(a)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		words = append(words, fmt.Sprintf("%s=%v", name, params[name]))
	}
	return strings.Join(words, " ")
}

// Cluster is what an action uses of a control plane to carry itself out. Every backend has it.
type Cluster interface {
	// Nodes are the names of the nodes at this moment, sorted.
	Nodes() []string
	// Client is one of an administrator, past load balancers and faults: to the API server of a node, or to any that serves if node is empty. The
	// caller does not close it.
	Client(node string) (dynamic.Interface, error)
	// Do carries out another action, such as Process on the processes that its selector picks. Its durations must be resolved, and an empty
	// name of a node stands for all.
	Do(ctx context.Context, a Action) error
	// Record adds an event to the history, now: a payload of package history.
	Record(payload any)
}

// Doer is an action that carries itself out, on any control plane: a verb for which no backend needs a handler. Do returns when it has taken effect.
type Doer interface {
	Action
	Do(ctx context.Context, c Cluster) error
}
