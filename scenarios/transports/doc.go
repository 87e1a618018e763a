// Command transports compares the ways in which reporters publish (topology.connectivity): the same faults over each of them, measured
// from the histories, as one table and as plots (make compare-transports). What the numbers mean is in docs/transports.md.
//
// faults.go has the faults, measure.go reads a history, table.go and plot.go present; these are pure. run.go and usage.go are the edge.
package main
