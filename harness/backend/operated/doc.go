// Package operated is the shared part of backends with an operator: the configurations that an administrator writes,
// the content of a rollout, the events for a decision, the intervals of the operator, and the writes of other clients
// to an operator's CR.
//
// It has no client, clock or goroutine. Each backend starts pods, plugins and reporters itself; the operator is in
// package operator.
package operated
