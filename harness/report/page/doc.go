// Package page makes the HTML page of one or more runs: a matrix of scenarios and backends, and for each run a timeline with what was
// done to it, what was seen, and what should have been.
//
// The core is pure: NewTimeline turns a history and its verdict into what is drawn, Write puts runs into one file. The file is
// complete in itself. It asks for nothing on a network, and works from a disk.
//
// What does not live here: reading runs from folders (harness/report/render), judging (harness/check).
package page
