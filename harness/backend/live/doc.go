// Package live carries out a scenario on a control plane of any backend. An Environment has its API servers, each with what acts on it: faults, processes,
// changes of nodes, data, the encryption and its switches, the system under test, and the operator with its roll-outs.
//
// What a control plane is, is in harness/cluster; what records it, and what makes it as good as new, beside that. Control planes are made in
// harness/backend/local, harness/backend/kind and harness/cluster/virtual.
package live
