// Package engine runs a scenario on an environment: the health check before the steps, the timeline of steps, the
// healing, and the health check after it.
//
// It reads the environment only through the events of the history, like every later reader of the history. It executes
// only the actions of the scenario, and afterwards the actions that undo them. One goroutine makes all decisions;
// actions run concurrently and report through the history. Runtime provides time and waiting.
//
// Invariants are in harness/check, the execution of actions in harness/backend, the form of results in harness/report.
package engine
