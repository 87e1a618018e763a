package cluster

import (
	"crypto/rand"
	"os"
	"strings"
)

// Labels of the objects of a run.
const (
	labelRun  = "kmsharness.io/run"  // on all of them: the name of the run
	labelNode = "kmsharness.io/node" // the node of the scenario that a pod is
	labelPart = "kmsharness.io/part" // partNode on the pods of nodes that are expected to report
	partNode  = "node"

	// annotationHost is on the namespace: the machine whose harness made it.
	annotationHost = "kmsharness.io/host"
)

// run is one use of a cluster. Its name is that of its namespace.
type run struct{ name string }

// newRun has a name that no other run has.
func newRun(prefix string) run { return run{prefix + "-" + strings.ToLower(rand.Text()[:6])} }

// suffix of the names of objects outside of the namespace.
func (r run) suffix() string { return "-" + r.name }

// labels of an object.
func (r run) labels() map[string]string { return map[string]string{labelRun: r.name} }

// selector of the run's objects.
func (r run) selector() string { return labelRun + "=" + r.name }

// host names this machine in annotationHost.
func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
