// Package choose returns the backend of a name. It is the only package that knows all backends; their packages
// implement them.
package choose

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	plugin "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Backend is one whose control plane, if it is real, can be looked into afterwards.
type Backend interface {
	backend.Backend
	// Kept are the environments that were left running.
	Kept() []*live.Environment
}

var (
	_ Backend = (*local.Backend)(nil)
	_ Backend = (*kind.Backend)(nil)
	_ Backend = (*virtual.Backend)(nil)
)

// entry is a backend and how it is used where nobody says otherwise. A new backend is one entry.
type entry struct {
	name, about string
	make        func(Options) (Backend, error)
	// watch is Watch; nil: everything ends with the harness.
	watch func(context.Context) func(ctx context.Context, progress func(string)) error
	// part is the default label filter, and partAbout describes what it selects; empty: everything.
	part, partAbout string
	// processes is how many scenarios run side by side.
	processes int
	// plane is Plane; nil: every scenario has a control plane of its own.
	plane func(*scenario.Scenario) string
	// sideBySide is SideBySide; nil: any machine can.
	sideBySide func() error
}

// Default is the backend that auto means.
const Default = local.Name

// entries are all backends, in the order in which they are shown.
func entries() []entry {
	return []entry{
		{name: virtual.Name, about: "simulated: the programs themselves in memory, in virtual time", make: Options.virtual, processes: runtime.NumCPU()},
		// On local a control plane takes thirteen seconds of a processor to boot, and a quarter of one while a scenario waits for intervals: with
		// four, two processors starve. The slow ones take a quarter of a minute and more, or others judge the same.
		{name: local.Name, about: "etcd and kube-apiserver as processes", make: Options.local, processes: 3, plane: local.Plane,
			part: "(!slow || local) && (form || !/@healthreports/)", partAbout: "everything but scenarios with the label slow that have not the label local; with both wire forms, typed only where the form can make a difference"},
		// On kind every process has clusters of its own. Its part is what only a real cluster can judge: kubelets, static pods, kubeadm, networks,
		// the load balancer, and one scenario of each category of failures. The rest is about decisions, which local judges in a third of the time.
		// Two clusters starve each other on two slow processors: the boot of one node took 91 s and what follows it 190 s, in place of 53 s and 5 s.
		{name: kind.Name, about: "nodes in containers", make: Options.kind, processes: min(max(runtime.NumCPU()/2, 1), 2), plane: kind.Plane, watch: kind.Watch, sideBySide: kind.HasMemoryForTwo,
			part: "only-kind && !slow || kind", partAbout: "scenarios with the label only-kind, which no other backend can judge, but for slow ones, and those with the label kind: one of each category"},
	}
}

func find(name string) (entry, bool) {
	all := entries()
	i := slices.IndexFunc(all, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return all[i], true
}

func Names() (names []string) {
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return names
}

// Name says which backend a name means, and why.
func Name(name string) (chosen, why string, err error) {
	if name == "auto" {
		e, _ := find(Default)
		return e.name, "auto: " + e.about + "; the same on nodes in containers: make e2e BACKEND=" + kind.Name + ", or --backend " + kind.Name, nil
	}
	if e, ok := find(name); ok {
		return e.name, e.about, nil
	}
	return "", "", fmt.Errorf("--backend %q: expected %s", name, Expected())
}

// Expected are the values of --backend, for a message: "auto, sim, local or kind".
func Expected() string {
	names := append([]string{"auto"}, Names()...)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Options of whatever backend it is. Local has what all have in common, too.
type Options struct {
	local.Options
	// ReporterForm is the wire form of a reporter under test whose template has no {contract}: InForm sets it.
	ReporterForm string
	// Streaming: the run is about reporters that stream.
	Streaming bool
	// Faults are those of the plugins on sim, where programs are compiled in.
	Faults fault.Catalogue
	// Strict makes house rules fail also programs that are not this project's.
	Strict bool
}

// New makes a backend by the name that Name gave. It starts nothing, and finds mistakes in the options.
func New(name string, o Options) (Backend, error) {
	e, ok := find(name)
	if !ok {
		return nil, fmt.Errorf("backend %q: expected %s", name, strings.Join(Names(), ", "))
	}
	for _, of := range [][2]string{{"reporter", o.Reporter.Image}, {"operator", o.Operator.Image}, {"plugin", o.Plugin.Image}} {
		if of[1] != "" && name != kind.Name {
			return nil, undertest.Wrong(of[0]+".image", "expected with --backend %s only; here it is %s.command", kind.Name, of[0])
		}
	}
	if name == kind.Name && o.Operator.Full() && !undertest.Has(o.Operator.Command, "podImage") {
		return nil, undertest.Wrong("operator.scope", "%s: expected {podImage} in operator.command, as the image of the pods that the operator creates: on kind kubelets run them", o.Operator.Scope)
	}
	return e.make(o)
}

func (o Options) local() (Backend, error) { return local.New(o.Options) }

func (o Options) kind() (Backend, error) {
	if o.Reporter.MountSockets {
		return nil, undertest.Wrong("reporter.mountSockets", "on kind every reporter has its sockets in /var/run/kmsplugin")
	}
	return kind.New(kind.Options{System: o.System})
}

// virtual runs the programs that are compiled into the harness: a system under test may give them other arguments.
func (o Options) virtual() (Backend, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	programs := virtual.Programs()
	programs[cluster.PluginProgram] = plugin.Options{Faults: o.Faults}.Main
	names := slices.Sorted(maps.Keys(programs))
	for _, of := range [][2]string{{"reporter.command", o.Reporter.Command}, {"aggregator.command", o.Aggregator.Command}, {"operator.command", o.Operator.Command},
		{"operator.preflight", o.Operator.Preflight}, {"plugin.command", o.Plugin.Command}} {
		program := undertest.ProgramOf(of[1])
		if program != "" && (of[0] == "plugin.command" || !slices.Contains(names, program)) {
			return nil, undertest.Wrong(of[0], "program %q: %s runs programs that are compiled into it: expected --backend local, or arguments for %s",
				program, virtual.Name, strings.Join(names, ", "))
		}
	}
	if o.Reporter.MountSockets || o.Operator.MountSockets || o.Operator.Full() {
		return nil, fmt.Errorf("mountSockets and operator.scope %s: expected with --backend local", undertest.ScopeFull)
	}
	args, err := command.Split(o.FakePlugin.Args)
	if err != nil {
		return nil, err // validated above
	}
	return virtual.New(virtual.Options{System: o.System, PluginArgs: args, Programs: programs}), nil
}

// Watch notes what the machine has before a run on a backend, and gives what deletes the rest afterwards: also what a run
// left behind because it had to be killed.
func Watch(ctx context.Context, name string, o Options) (sweep func(ctx context.Context, progress func(string)) error) {
	if e, _ := find(name); e.watch != nil {
		return e.watch(ctx)
	}
	return func(context.Context, func(string)) error { return nil } // processes die with the harness
}

// AllLabels selects everything on every backend.
const AllLabels = "all"

// Part is the label filter that is meant by the one that somebody gave, and what to tell them of it: on real control planes the default is
// a part of the catalogue, so that a verdict takes minutes.
func Part(name, labels string) (filter, notice string) {
	if labels == AllLabels {
		return "", ""
	}
	if e, _ := find(name); labels == "" && e.part != "" {
		return e.part, e.partAbout + "; everything: LABELS=" + AllLabels + " or --labels " + AllLabels
	}
	return labels, ""
}

// Processes is how many scenarios run side by side if nobody says.
func Processes(name string) int {
	e, _ := find(name)
	return max(e.processes, 1)
}

// Plane names the control plane that a scenario needs on a backend: one serves all that need the same. It is empty where each has its own.
func Plane(name string, s *scenario.Scenario) string {
	if e, _ := find(name); e.plane != nil {
		return e.plane(s)
	}
	return ""
}

// SideBySide says whether this machine can have two control planes of the largest topology of the catalogue, or what to do about it.
func SideBySide(name string) error {
	if e, _ := find(name); e.sideBySide != nil {
		return e.sideBySide()
	}
	return nil
}
