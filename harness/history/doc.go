// Package history is the record of one run: an append-only list of events, saved as JSON lines.
//
// It is the only input of the checker. Engine and backends write it; it contains no judgements. An event has what
// happened, the time (by the clock of the machine of the harness, which all recorders of the local backend share) and
// the source of the observation. Reading a saved history returns exactly the written events, so that any run can be
// judged again offline.
//
// Invariants are in harness/check, the state that expectations use in harness/scenario/view.
package history
