// Package report shows results: to a person on a terminal, to CI as JUnit, to other programs as JSON.
//
// A result is one scenario on one backend (Result). Each process that runs scenarios writes its results below the
// output directory; whoever finishes reads them all back (Collect), so that parallel processes need not talk.
//
// What does not live here: judging (harness/check), running (harness/engine).
package report
