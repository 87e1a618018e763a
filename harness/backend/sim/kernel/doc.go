// Package kernel is a discrete-event simulation: a virtual clock, a queue of events in the order of their instants, one seeded
// source of randomness, and tasks that wait for each other.
//
// Everything happens on one thread of control. Events of one instant run in the order in which they were scheduled, so that
// nothing depends on how the machine is loaded or on how many cores it has. What does not live here: anything about Kubernetes.
package kernel
