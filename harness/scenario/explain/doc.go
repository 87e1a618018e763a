// Package explain describes a scenario before it runs: its timeline in sentences and as a text chart.
//
// It computes the earliest and the latest begin and end of each step, and formats sentences and lines. harness/scenario
// reads files, harness/engine runs them.
package explain
