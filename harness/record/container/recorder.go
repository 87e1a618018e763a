package container

import (
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder records what happens in one node. It is for one goroutine.
type Recorder struct {
	Sink   record.Sink
	Node   string
	Name   string // of the container that is the node
	Source string
	// Wanted says which containers are of interest.
	Wanted func(Identity) bool
	// Look asks what a container is that Known does not have; false: it is no container of Kubernetes'.
	Look func(id string) (Identity, bool, error)
	// Known are containers by ID.
	Known map[string]Identity
}

// Engine records one line of docker events.
func (r *Recorder) Engine(line []byte) error {
	at, c, err := Engine(r.Node, r.Name, line)
	if c != nil {
		r.Sink.Record(at, r.Source, c)
	}
	return err
}

// Containerd records one line of ctr events.
func (r *Recorder) Containerd(line []byte) error {
	change, err := Containerd(line)
	if change == nil || err != nil {
		return err
	}
	i, ok, err := r.identity(change.ID)
	if err != nil || !ok || !r.Wanted(i) {
		return err
	}
	c := &history.Container{Node: r.Node, Namespace: i.Namespace, Pod: i.Pod, Name: i.Name, State: change.State, ExitCode: change.ExitCode}
	if change.State == history.ContainerStarted {
		c.Restarts = i.Restarts
	}
	r.Sink.Record(change.At, r.Source, c)
	return nil
}

func (r *Recorder) identity(id string) (Identity, bool, error) {
	i, known := r.Known[id]
	if known {
		return i, i.Name != "", nil
	}
	i, ok, err := r.Look(id)
	if err != nil {
		return i, false, err
	}
	if r.Known == nil {
		r.Known = map[string]Identity{}
	}
	r.Known[id] = i // also what is none: it is not asked for again
	return i, ok, nil
}
