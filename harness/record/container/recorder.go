// Package container converts the output of a container engine and of containerd to the history's containers.
//
// Neither needs an API server: the engine reports the containers that are nodes, containerd those inside a node.
// harness/backend/kind runs the commands that print this; harness/supervisor records the processes under a
// supervisor.
package container

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

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
	// Inspect asks what a container is that Known does not have; false: it is no container of Kubernetes'.
	Inspect func(id string) (Identity, bool, error)
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
	at, id, c, err := Containerd(line)
	if c == nil || err != nil {
		return err
	}
	i, ok, err := r.identity(id)
	if err != nil || !ok || !r.Wanted(i) {
		return err
	}
	c.Node, c.Namespace, c.Pod, c.Name = r.Node, i.Namespace, i.Pod, i.Name
	if c.State == history.ContainerStarted {
		c.Restarts, c.PodUID = i.Restarts, i.PodUID
	}
	r.Sink.Record(at, r.Source, c)
	return nil
}

func (r *Recorder) identity(id string) (Identity, bool, error) {
	i, known := r.Known[id]
	if known {
		return i, i.Name != "", nil
	}
	i, ok, err := r.Inspect(id)
	if err != nil {
		return i, false, err
	}
	if r.Known == nil {
		r.Known = map[string]Identity{}
	}
	r.Known[id] = i // also what is none: it is not asked for again
	return i, ok, nil
}

type Identity struct {
	Namespace, Pod, Name string
	PodUID               string
	Restarts             *int // nil: unknown
}

// Labels and annotations that the kubelet gives to containers.
const (
	labelKind          = "io.cri-containerd.kind"
	labelNamespace     = "io.kubernetes.pod.namespace"
	labelPod           = "io.kubernetes.pod.name"
	labelUID           = "io.kubernetes.pod.uid"
	labelName          = "io.kubernetes.container.name"
	annotationRestarts = "io.kubernetes.container.restartCount"
)

// Info reads what ctr containers info says of a container. A pod's sandbox is none of Kubernetes' containers: false.
func Info(text []byte) (Identity, bool, error) {
	var info struct {
		Labels     map[string]string
		Extensions map[string]struct {
			Value []byte `json:"value"`
		}
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return Identity{}, false, fmt.Errorf("information about a container: %w", err)
	}
	i := Identity{Namespace: info.Labels[labelNamespace], Pod: info.Labels[labelPod], Name: info.Labels[labelName], PodUID: info.Labels[labelUID]}
	if info.Labels[labelKind] != "container" || i.Pod == "" || i.Name == "" {
		return Identity{}, false, nil
	}
	for _, x := range info.Extensions {
		if n, ok := restarts(x.Value); ok {
			i.Restarts = &n
		}
	}
	return i, true, nil
}

// restarts is in the configuration that the kubelet gave, which containerd keeps in a form of its own: where it is not found,
// it is not known.
func restarts(metadata []byte) (int, bool) {
	var kept struct {
		Metadata struct {
			Config struct {
				Annotations map[string]string `json:"annotations"`
			}
		}
	}
	if json.Unmarshal(metadata, &kept) != nil {
		return 0, false
	}
	n, err := strconv.Atoi(kept.Metadata.Config.Annotations[annotationRestarts])
	return n, err == nil
}

// Links reads the names and targets of the links that the kubelet makes to the logs of containers, one a line, and gives the
// containers by ID. Other lines are left out.
func Links(text string) map[string]Identity {
	all := map[string]Identity{}
	for line := range strings.Lines(text) {
		link, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		parts := strings.Split(strings.TrimSuffix(link, ".log"), "_")
		if len(parts) != 3 {
			continue
		}
		dash := strings.LastIndex(parts[2], "-")
		if dash < 0 {
			continue
		}
		i := Identity{Pod: parts[0], Namespace: parts[1], Name: parts[2][:dash]}
		if n, err := strconv.Atoi(strings.TrimSuffix(path.Base(target), ".log")); err == nil {
			i.Restarts = &n
		}
		all[parts[2][dash+1:]] = i
	}
	return all
}
