// Package kind is the backend with real nodes: kind clusters whose kube-apiserver static pods have the fake plugins and
// the reporter as sidecars. The aggregator and the aggregated API servers, with their plugins and reporters, are
// Deployments.
//
// A control plane is one cluster: the containers of its nodes (node.go), one table of the units in their containers
// (units.go), the members of etcd (etcd.go) and the links (links.go). Sockets, journals, logs and the commands of
// containers are in folders of this machine that the nodes mount, so actions and recorders are those of the local
// backend (harness/backend/live). Every program under test runs under kmsharness-supervisor, so that a stopped program
// stays down. The packet filters of the nodes break links between containers, with a kmsharness-proxy behind them if
// packet filters are not sufficient.
//
// The package has the clusters, their wiring, and the faults that need nodes. Actions on a control plane are in
// harness/backend/live, adding sidecars to a manifest is in operator/sidecar, building images in ci/images and
// ci/nodeimage, and starting a container engine in ci/engine.
package kind
