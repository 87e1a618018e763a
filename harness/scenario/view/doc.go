// Package view is what an expectation can see: the state of a control plane, built from the events of a history and
// from nothing else, and the CEL language over it.
//
// What lives here: the typed variables (types.go), folding events into them (state.go and its neighbours), compiling
// and evaluating expressions (compile.go, program.go), and saying in words why one is false (explain.go). What does
// not: when an expression is judged (harness/engine), and what must hold in every run (harness/check).
package view
