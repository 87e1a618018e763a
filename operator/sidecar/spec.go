package sidecar

import (
	corev1 "k8s.io/api/core/v1"
)

// Names by which others recognise what was injected.
const (
	// Prefix begins the names of all volumes of this package.
	Prefix = "kmsharness-"
	// Annotation of the pod has the pod as it was before anything was injected, in JSON.
	Annotation = "kmsharness.io/injected"
	// APIServerContainer is the name that kubeadm and OpenShift give to the API server's own container.
	APIServerContainer = "kube-apiserver"
)

// Spec is what a pod gets. The zero value is nothing.
type Spec struct {
	// Sidecars in the order in which they start: the kubelet starts the next one when the one before has started (or, with
	// a startup probe, answers it), and the API server after the last one. They come after the pod's other init containers.
	Sidecars  []Sidecar
	APIServer APIServer
	// Labels of the pod, such as its revision.
	Labels map[string]string
	// Namespace of the pod; empty: the one that it has.
	Namespace string
}

// Sidecar is one restartable init container. A kubelet restarts it whenever it ends.
type Sidecar struct {
	Name          string
	Image         string
	Command, Args []string
	Env           []corev1.EnvVar
	Mounts        []Mount
	// StartupProbe keeps everything after this sidecar waiting until it succeeds.
	StartupProbe    *corev1.Probe
	SecurityContext *corev1.SecurityContext
	// TerminationMessagePolicy says where the kubelet finds why the container ended; empty: in the file that the container may write.
	TerminationMessagePolicy corev1.TerminationMessagePolicy
	// AfterAPIServer documents that the program of this container starts only when the API server answers, although the
	// container starts before it: kmsharness-supervisor waits for its command. It must not have a startup probe, for which the
	// API server would wait in turn.
	AfterAPIServer bool
}

// Mount is a folder or file of the node. Mounts of one name, in several containers, share one volume of the pod.
type Mount struct {
	// Name of the volume without Prefix.
	Name      string
	HostPath  string
	Type      corev1.HostPathType // "" checks nothing
	MountPath string
	ReadOnly  bool
}

// APIServer is what is merged into the API server's own container.
type APIServer struct {
	Flags  []Flag
	Mounts []Mount
	// Wrap comes before the command: kmsharness-supervisor, its flags and "--". Empty: the command stays as it is.
	Wrap []string
	// WithoutLiveness takes the liveness probe away. A kubelet would otherwise restart an API server that is down or paused on
	// request, and do so later each time.
	WithoutLiveness bool
}

// Flag is a flag of the API server. One that is set already is replaced as a whole, lists too.
type Flag struct{ Name, Value string }
