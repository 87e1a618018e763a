// Package controlplane runs a real Kubernetes control plane as processes: one etcd and any number of kube-apiservers,
// each with its own certificate, encryption configuration, audit log and link to etcd.
//
// It has certificates, ports, flags, configuration files, the start and end of the processes, readiness, client
// configurations and the installation of manifests. Plugins, reporters, load balancers and the reading of audit logs
// belong to the backends; harness/assets provides the binaries.
package controlplane
