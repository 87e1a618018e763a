// Package live is what backends with a real control plane share: an Environment carries out a scenario's actions, keeps the
// objects that the system under test reads, and records what happens. How the processes of a control plane run (as
// processes of this machine, as containers in kind's nodes) is behind Plane and Unit, which each backend implements.
//
// What lives here: actions, recorders, the objects of the cluster and their reset, data and how it lies in etcd. What does
// not: booting and keeping control planes (harness/backend/local, harness/backend/kind), how sources become events
// (harness/record).
package live
