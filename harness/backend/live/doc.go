// Package live is the shared part of backends with a real control plane. An Environment executes the actions of a
// scenario, creates the objects that the system under test reads, and records events. Each backend implements the
// interfaces behind which the processes of a control plane run, as processes of this machine or as containers in kind's
// nodes.
//
// The package has actions, recorders, the objects of the cluster and their reset, and data and their form in etcd.
// Starting and keeping control planes is in harness/backend/local and harness/backend/kind, the conversion of sources
// to events in harness/record.
package live
