// Package cluster is the backend for existing clusters: it deploys the fake plugin, reporters and the aggregator to a
// cluster that the harness did not make, runs the scenarios that such a cluster allows, and removes all that it made.
//
// The API servers there do not encrypt through the plugins of a scenario, and neither they nor etcd nor the nodes are the
// harness's: scenarios that need them are not supported. For each node of a scenario there is a pod with plugins and a
// reporter; several may be on one node of the cluster. Another pod, the hub, has the aggregators and the remote KMS.
// Every pod has an agent (harness/agent), through which the harness reads journals, reaches sockets, and records requests.
//
// All objects have the label of the run. Namespaced ones are in the run's namespace, the names of the others end with the
// run's name. Only the CRDs of OpenShift have fixed names: a cluster that has them is refused.
//
// The package has the objects, the connections to the pods, and their units. Actions and recorders are in
// harness/backend/live.
package cluster
