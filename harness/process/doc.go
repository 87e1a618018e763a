// Package process runs the child processes of a harness and makes sure that none outlives it.
//
// What lives here: starting with a log file in a process group of its own, stopping, killing, pausing and resuming, the
// wait for readiness, and the run directory with its lock. What does not: what the processes are, their flags, and who
// records their changes (the caller's OnChange does).
//
// Nothing survives the harness, in three layers. The owner closes the Supervisor on every orderly way out. The kernel
// kills the children when the harness dies (parent-death signal). What slipped through both, such as grandchildren, is
// found by its environment and killed when the next harness removes the stale run directory.
package process
