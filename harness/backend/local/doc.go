// Package local is the backend that runs a control plane as processes on this machine: etcd, one kube-apiserver per
// node with KMS v2 encryption, the fake plugins, the remote KMS model, and the reporters and aggregators under test.
//
// A plane is what several scenarios can share (etcd, API servers, plugins, remote KMS, load balancer); an Environment
// is one scenario on it, with a system under test of its own and the recorders. What lives here: wiring, actions, and
// the reset between scenarios. What does not: how the processes of a control plane are run (harness/controlplane,
// harness/process), how links fail (harness/netfault), how sources become events (harness/record).
package local
