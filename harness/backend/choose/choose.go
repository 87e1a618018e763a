// Package choose returns the backend of a name. It is the only package that knows all backends; their packages
// implement them.
package choose

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
)

// Backend is one whose control plane, if it is real, can be looked into afterwards.
type Backend interface {
	backend.Backend
	// Kept are the environments that were left running.
	Kept() []*live.Environment
}

// simulated leaves nothing running.
type simulated struct{ *sim.Backend }

func (simulated) Kept() []*live.Environment { return nil }

var (
	_ Backend = (*local.Backend)(nil)
	_ Backend = (*kind.Backend)(nil)
	_ Backend = simulated{}
)

// Name says which backend a name means, and why.
func Name(name string) (chosen, why string, err error) {
	switch name {
	case "auto":
		return local.Name, "auto: etcd and kube-apiserver as processes; for nodes in containers say kind", nil
	case local.Name:
		return local.Name, "etcd and kube-apiserver as processes", nil
	case kind.Name:
		return kind.Name, "nodes in containers", nil
	case sim.Name:
		return sim.Name, "simulated, in virtual time", nil
	case "cluster":
		return "", "", fmt.Errorf("--backend %s: not part of this version; expected auto, local, kind or sim", name)
	}
	return "", "", fmt.Errorf("--backend %q: expected auto, local, kind or sim", name)
}

// Options of whatever backend it is. Local has what all have in common, too.
type Options struct {
	local.Options
	// ReporterImage and ReporterArgs are kind's.
	ReporterImage, ReporterArgs string
	// ReporterForm is the wire form of a reporter under test whose template has no {contract}: InForm sets it.
	ReporterForm string
	// Strict makes house rules fail also programs that are not this project's.
	Strict bool
}

// Flags are the command-line flags of kmsharness run and e2e that ask for the same again, quoted for a shell.
func (o Options) Flags() []string {
	flags := o.Options.Flags()
	for _, f := range [][2]string{{"--reporter-image", o.ReporterImage}, {"--reporter-args", o.ReporterArgs}} {
		if f[1] != "" {
			flags = append(flags, f[0], local.Quote(f[1]))
		}
	}
	if o.Strict {
		flags = append(flags, "--strict")
	}
	return flags
}

// New makes a backend by the name that Name gave. It starts nothing, and finds mistakes in the options.
func New(name string, o Options) (Backend, error) {
	if name != kind.Name {
		if o.ReporterImage != "" || o.ReporterArgs != "" {
			return nil, fmt.Errorf("--reporter-image and --reporter-args: expected with --backend kind only; here it is --reporter-command")
		}
		if name == sim.Name {
			return o.simulated()
		}
		return local.New(o.Options)
	}
	if o.ReporterMountSockets {
		return nil, fmt.Errorf("--reporter-mount-sockets: on kind every reporter has its sockets in /var/run/kmsplugin")
	}
	return kind.New(kind.Options{
		SystemUnderTest: o.SystemUnderTest,
		PluginArgs:      o.PluginArgs, ReporterImage: o.ReporterImage, ReporterArgs: o.ReporterArgs,
	})
}

// simulated refuses what needs a program to run.
func (o Options) simulated() (Backend, error) {
	if o.SystemUnderTest != (live.SystemUnderTest{}) || o.PluginArgs != "" || o.ReporterMountSockets {
		return nil, fmt.Errorf("--backend sim runs the decisions of this project's own reporter and aggregator, and no programs: " +
			"--reporter-command, --aggregator-command, --reporter-identity, --plugin-args and --reporter-mount-sockets are for --backend local")
	}
	return simulated{sim.New(sim.Options{})}, nil
}

// Watch notes what the machine has before a run on a backend, and gives what deletes the rest afterwards: also what a run
// left behind because it had to be killed.
func Watch(ctx context.Context, name string) (sweep func(ctx context.Context, progress func(string)) error) {
	if name != kind.Name {
		return func(context.Context, func(string)) error { return nil } // processes die with the harness
	}
	return kind.Watch(ctx)
}

// AllLabels selects everything on every backend.
const AllLabels = "all"

// partOnLocal leaves out what takes half a minute and more: an operator that waits for agreement, and three API servers on each node.
const partOnLocal = "!slow"

// partOnKind is what only a real cluster can judge: kubelets, static pods, kubeadm, networks, the load balancer. The rest is about decisions,
// which local judges in a third of the time.
const partOnKind = "only-kind"

// Part is the label filter that is meant by the one that somebody gave, and what to tell them of it: on real control planes the default is
// a part of the catalogue, so that a verdict takes minutes.
func Part(name, labels string) (filter, notice string) {
	switch {
	case labels == AllLabels:
		return "", ""
	case labels == "" && name == local.Name:
		return partOnLocal, "everything but scenarios with the label slow; everything: LABELS=" + AllLabels + " or --labels " + AllLabels
	case labels == "" && name == kind.Name:
		return partOnKind, "scenarios with the label " + partOnKind + ", which no other backend can judge; everything: LABELS=" + AllLabels + " or --labels " + AllLabels
	default:
		return labels, ""
	}
}

// Processes is how many scenarios run side by side if nobody says: on local four, which mostly wait for intervals and take three quarters of
// two processors; on kind every process has clusters of its own.
func Processes(name string) int {
	if name == local.Name {
		return 4
	}
	return 2
}

// KeepTogether says whether one process should run scenarios of one topology one after another, because another control plane of the
// same size costs more than running a few of them side by side saves.
func KeepTogether(name string) bool { return name == kind.Name }

// SideBySide says whether this machine can have two control planes of the largest topology of the catalogue, or what to do about it.
func SideBySide(name string) error {
	if name != kind.Name {
		return nil
	}
	return kind.HasMemoryForTwo()
}
