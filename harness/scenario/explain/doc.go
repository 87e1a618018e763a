// Package explain says what a scenario is going to do, before it runs: its timeline in words and as a chart of text.
//
// What lives here: when each step can begin and end at the earliest and the latest, sentences, lines. What does not: reading files
// (harness/scenario), running them (harness/engine).
package explain
