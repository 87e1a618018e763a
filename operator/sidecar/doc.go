// Package sidecar puts plugins and reporters into the static pod of a kube-apiserver, as restartable init containers, and
// takes them out again.
//
// It is a pure conversion of one pod into another, for whoever owns the manifest: a kind node's kubelet folder, or the
// model of an operator that rolls out revisions of the pod. What lives here: the containers and their volumes, the flags,
// mounts and command of the API server's own container, and the manifest's YAML. What does not: what the containers run,
// reading and writing files on a node (a write there must be atomic), and waiting for the kubelet.
//
// Nothing is touched that does not belong to this package. What belongs to it is listed in the annotation Annotation, volumes with names that begin
// with Prefix, together with what stood there before, so that an injection is idempotent, can
// be replaced by another one, and can be undone without a trace.
package sidecar
