// Package sidecar adds plugins and reporters to the static pod of a kube-apiserver, as restartable init containers, and
// removes them.
//
// It is a pure conversion of one pod into another. It has the containers and their volumes, the flags, mounts and
// command of the API server's own container, and the manifest's YAML. Its callers choose the programs in the
// containers, read and write files on a node (atomically), and wait for the kubelet.
//
// The package changes nothing that it did not add. The annotation Annotation lists what was added, and what it
// replaced; names of added volumes begin with Prefix. An injection is therefore idempotent, and can be replaced or
// undone completely.
package sidecar
