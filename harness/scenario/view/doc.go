// Package view has the variables of expectations: the state of a control plane, computed only from the events of a
// history, and the CEL language over it.
//
// It has the typed variables (types.go), their update by events (state.go and its neighbours), the compilation and
// evaluation of expressions (compile.go, program.go), and the explanation why one is false (explain.go). harness/engine
// decides when an expression is judged; the invariants of every run are in harness/check.
package view
