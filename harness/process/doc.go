// Package process runs the child processes of a harness and ensures that none outlives it.
//
// It starts a process with a log file in its own process group, stops, kills, pauses and resumes it, waits for its
// readiness, and has the run directory with its lock. The caller chooses programs and flags, and records their changes
// (OnChange).
//
// Three layers ensure that no process survives the harness. The owner closes the Supervisor on every orderly exit. The
// kernel kills the children when the harness dies (parent-death signal). The next harness finds the remaining
// processes, such as grandchildren, by their environment and kills them when it removes the stale run directory.
package process
