// Package history is the record of one run: an append-only list of events, saved as JSON lines.
//
// It is the only thing that the checker sees. Engine and backends write it; nothing in it is a judgement. An event
// says what happened, when (by the clock of the machine that ran the harness, which all recorders of the local
// backend share) and who saw it. Reading a saved history gives back exactly what was written, so that any run can be
// judged again, offline.
//
// What does not live here: invariants (harness/check), the state view of expectations (harness/engine).
package history
