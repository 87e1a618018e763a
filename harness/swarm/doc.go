// Package swarm draws scenarios from seeds and runs them on simulations. Each seed gives a topology and faults that come and go at
// random, some at the same time; the engine then ends them all and demands that everything gets well. There are no expectations in
// between: whatever happens is judged by the invariants.
//
// What was drawn is a scenario file like any other, and runs on every backend. What does not live here: the simulation
// (harness/backend/sim), and what must hold (harness/check).
package swarm
