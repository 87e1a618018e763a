// Package local is the backend that runs a control plane as processes on this machine: etcd, one kube-apiserver per
// node with KMS v2 encryption, the fake plugins, the remote KMS model, and the reporters and aggregators under test.
//
// Several scenarios can use one control plane (etcd, API servers, plugins, remote KMS, load balancer), one after
// another. The package boots, wires and keeps control planes. Actions are in harness/backend/live, the processes of a
// control plane in harness/controlplane and harness/process, link faults in harness/netfault.
package local
