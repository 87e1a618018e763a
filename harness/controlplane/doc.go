// Package controlplane runs a real Kubernetes control plane as processes: one etcd and any number of kube-apiservers, each with
// its own certificate, encryption configuration, audit log and link to etcd.
//
// What lives here: certificates, ports, flags, configuration files, the life cycle of the processes, readiness, client
// configurations and the installation of manifests. What does not: the plugins behind the sockets, reporters, load
// balancers, what an audit log says (the backend's), and where the binaries come from (harness/assets).
package controlplane
