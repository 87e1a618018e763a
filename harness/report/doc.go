// Package report presents the results of a run (package result): to a person on a terminal, to CI as JUnit, to other programs as JSON.
//
// Each process that runs scenarios writes its results below the output directory; the process that finishes last reads them all (Collect), so
// that parallel processes do not communicate.
package report
