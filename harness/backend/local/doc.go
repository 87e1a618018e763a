// Package local is the backend that runs a control plane as processes on this machine: etcd, one kube-apiserver per
// node with KMS v2 encryption, the fake plugins, the remote KMS model, and the reporters and aggregators under test.
//
// A plane is what several scenarios can share (etcd, API servers, plugins, remote KMS, load balancer). What lives here:
// booting, wiring and keeping planes. What does not: what is done with them (harness/backend/live), how the processes of a
// control plane are run (harness/controlplane, harness/process), how links fail (harness/netfault).
package local
