// Package choose makes the backend that a person names. It is the one place that knows all of them; what they do lives in
// packages of their own.
package choose

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
)

// Backend is one with a real control plane, which can be looked into afterwards.
type Backend interface {
	backend.Backend
	// Kept are the environments that were left running.
	Kept() []*live.Environment
}

var (
	_ Backend = (*local.Backend)(nil)
	_ Backend = (*kind.Backend)(nil)
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
	case "sim", "cluster":
		return "", "", fmt.Errorf("--backend %s: not part of this version; expected auto, local or kind", name)
	}
	return "", "", fmt.Errorf("--backend %q: expected auto, local or kind", name)
}

// New makes a backend by the name that Name gave. It starts nothing, and finds mistakes in the options.
func New(name string, o local.Options) (Backend, error) {
	if name != kind.Name {
		return local.New(o)
	}
	if o.ReporterMountSockets {
		return nil, fmt.Errorf("--reporter-mount-sockets: on kind every reporter has its sockets in /var/run/kmsplugin")
	}
	return kind.New(kind.Options{
		SystemUnderTest: live.SystemUnderTest{ReporterCommand: o.ReporterCommand, AggregatorCommand: o.AggregatorCommand},
		PluginArgs:      o.PluginArgs,
	})
}

// Procs is how many scenarios run side by side unless somebody says otherwise: each needs a control plane of its own.
func Procs(name string) int {
	if name == kind.Name {
		return 1
	}
	return 2
}
