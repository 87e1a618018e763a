// Package operated is what backends with an operator have in common: what an administrator writes, what a rollout has in it, what becomes of a
// decision in a history, and the operator's pace; and what others than reporters write into an operator's CR.
//
// What lives here has no client, clock or goroutine. What does not: how pods, plugins and reporters are started, which each backend does in its
// own way, and the operator itself (operator).
package operated
