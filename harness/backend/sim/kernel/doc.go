// Package kernel is a discrete-event simulation: a virtual clock, a queue of events in the order of their times, one
// seeded source of randomness, and tasks that wait for each other.
//
// Everything runs in one thread of control. Events of one time run in the order in which they were scheduled, so that
// results do not depend on the load or the number of cores of the machine. The package is independent of Kubernetes.
package kernel
