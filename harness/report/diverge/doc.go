// Package diverge finds where two histories of the same scenario part.
//
// Histories are compared event by event first. If they are not the same, each is taken apart into strands (what one plugin answered,
// what one rollup said, what one process did …), in which only the order of what was said counts: no instant, no number of repetitions,
// no name that is drawn anew for each run. Two runs on real processes are then the same if only their times differ.
//
// What does not live here: verdicts of whole runs (report.Compare).
package diverge
