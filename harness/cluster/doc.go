// Package cluster has what a control plane is to those who run scenarios on it: its nodes, plugins, processes, links, storage and credentials, each behind
// an interface that a backend implements, and what all backends do alike with processes of the machine they run on.
//
// Backends (harness/backend/kind, harness/backend/local, harness/cluster/virtual) make control planes; harness/backend/live acts on them. This package
// imports neither.
package cluster
