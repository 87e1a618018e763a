// Package exchange is what passes between an operator and the API: objects into what is observed, actions into objects, conditions into an
// apply, and when to look again.
//
// What lives here has no client, clock or goroutine, so that an operator of a real control plane (operator) and one that is
// simulated (harness/backend/sim) read, write and say the same. What does not: how objects are watched and sent, and any decision.
package exchange
