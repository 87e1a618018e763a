// Package exchange converts between an operator and the API: objects to observations, actions to objects, and
// conditions to an apply. It also returns when the operator runs next.
//
// It has no client, clock or goroutine. Watching and sending objects is in package operator, decisions are in
// operator/core.
package exchange
