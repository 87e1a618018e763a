package history

import (
	"fmt"
	"strings"
)

// States of a container.
const (
	ContainerStarted  = "started"
	ContainerExited   = "exited"   // its first process has ended
	ContainerSignal   = "signal"   // somebody had the engine send it a signal
	ContainerPaused   = "paused"   // frozen with all that is in it
	ContainerUnpaused = "unpaused" // goes on
	ContainerOOM      = "oom"      // the kernel ended something in it for want of memory
	ContainerWaiting  = "waiting"  // it cannot run; Detail has why, in the kubelet's words
	ContainerUnseen   = "unseen"   // no change of it: until further notice nobody says what happens in Node
)

// PodRevised is a state of a pod as a whole: it was replaced, as Revision has it, and its API server and plugins run. Name is empty.
const PodRevised = "revised"

// PodRefused is a state of a pod as a whole: it was to be replaced by one of an older revision, and Detail has why not. The pod stays.
const PodRefused = "refused"

// Container is a change of a container, as the engine or containerd tells it. What a process below hold does is a Process: its
// container changes only when hold itself ends, or passes on that its program did.
type Container struct {
	Node string `json:"node"`
	// Namespace and Pod are empty for the container that is the node.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Name in the pod, or of the engine.
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// PodUID is that of the pod of a container that started. For a static pod it is the kubelet's, which changes with every revision.
	PodUID string `json:"podUID,omitempty"`
	// Revision of a pod that was revised, or of that of a container that waits.
	Revision int `json:"revision,omitempty"`
	// ExitCode of one that exited, Restarts of one that started: how many were in its place before. nil: nobody told.
	ExitCode *int   `json:"exitCode,omitempty"`
	Restarts *int   `json:"restarts,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// String is one line: "cp-1 kube-apiserver-cp-1/reporter exited, exit code 137".
func (c Container) String() string {
	name := c.Name
	if c.Pod != "" {
		name = strings.TrimSuffix(c.Pod+"/"+c.Name, "/")
	}
	parts := []string{strings.Join([]string{c.Node, name, c.State}, " ")}
	if c.Revision != 0 {
		parts = append(parts, fmt.Sprintf("revision %d", c.Revision))
	}
	if c.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.Restarts != nil {
		parts = append(parts, fmt.Sprintf("restart %d", *c.Restarts))
	}
	if c.PodUID != "" {
		parts = append(parts, "pod "+c.PodUID)
	}
	if c.Detail != "" {
		parts = append(parts, c.Detail)
	}
	return strings.Join(parts, ", ")
}
