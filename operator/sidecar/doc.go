// Package sidecar adds plugins and reporters to the static pod of a kube-apiserver, as restartable init containers.
//
// It is a pure conversion of one pod into another. It has the containers and their volumes, the flags, mounts and
// command of the API server's own container, and the manifest's YAML. Its callers choose the programs in the
// containers, read and write files on a node (atomically), and wait for the kubelet.
//
// The annotation Annotation has the pod as it was, so that another injection takes the place of the one before. Names of
// added volumes begin with Prefix.
package sidecar
