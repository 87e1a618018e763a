// Package exchange converts between an operator and the API: objects to observations, actions to objects, and
// conditions to an apply. It also returns when the operator runs next.
//
// It has no client, clock or goroutine, so that the operator of a real control plane (operator) and a simulated
// operator (harness/backend/sim) read and write the same objects. Watching and sending objects, and decisions, are in
// those packages and in operator/core.
package exchange
