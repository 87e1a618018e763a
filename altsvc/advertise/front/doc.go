// Package front is the program kmsharness-front: one advertise.Front before the kube-apiserver of a node that kubeadm set up, with the
// alternatives that the EndpointSlices of the Service kubernetes name.
//
// It has the flags, the files of a kubeadm node, and the end by a signal. The proxy and the field are in package advertise.
package front
