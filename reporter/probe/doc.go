// Package probe asks plugins for their Status over gRPC: every plugin at once, each with a deadline of its own that
// really holds. What an answer means is not decided here but in reporter/core.
//
// Every probe dials a connection of its own and closes it. A kept connection would be cheaper by about a
// millisecond per interval, and wrong in three ways: after a dead socket gRPC's dial back-off hides the recovery for
// up to two minutes; after a hang the connection may stay wedged; and a removed or replaced socket is not noticed as
// long as the old process still serves the old connection, although a restarted API server could not reach it.
package probe
