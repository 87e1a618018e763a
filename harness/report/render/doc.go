// Package render reads the folders of runs, judges every history again, and writes the reports for people and programs:
// the page (index.html), the comment (summary.md), summary.json and junit.xml.
//
// The form of each is in harness/report and harness/report/page, judging in harness/check.
package render
