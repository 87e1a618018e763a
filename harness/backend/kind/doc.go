// Package kind is the backend with real nodes: kind clusters whose kube-apiserver static pods have the fake plugins and the
// reporter as sidecars, and in which the aggregator and aggregated API servers, with plugins and reporters of their own, are Deployments.
//
// A plane is one cluster. It consists of the machines of its nodes (node.go), one table of the units in their containers (units.go), etcd's
// members (etcd.go) and links (links.go). What the harness wants to see or to reach (sockets, journals, logs, the words of a command) lies
// in folders of this machine that the nodes mount, so actions and recorders are the same as on the local backend
// (harness/backend/live). Every program under test runs below kmsharness-supervisor, so that a stopped one stays down.
// Links between containers are broken by the packet filters of the nodes, with a kmsharness-proxy behind them where these do
// not suffice.
//
// What lives here: clusters, their wiring, and the faults that only nodes can have. What does not: what is done with a plane
// (harness/backend/live), how sidecars come into a manifest (operator/sidecar), building images (ci/images,
// ci/nodeimage), starting a container engine (ci/engine).
package kind
