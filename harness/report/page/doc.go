// Package page writes the HTML page of one or more runs: a matrix of scenarios and backends, and for each run a
// timeline of its actions, its observations and the expected states.
//
// The core is pure: NewTimeline converts a history and its verdict to a timeline, Write writes runs to one file. The
// file is self-contained: it needs no network and can be opened from a disk.
//
// Reading runs from folders is in harness/report/render, judging in harness/check.
package page
