// Package diverge finds the first difference of two histories of the same scenario.
//
// It compares the histories event by event first. If they differ, it divides each into strands (the answers of one
// plugin, the states of one rollup, the states of one process …), and compares the order of the observations in each
// strand. Times, repetitions, and names that are drawn for each run are ignored. Two runs on real processes are then
// equal if only their times differ.
//
// Verdicts of runs are compared by report.Compare.
package diverge
