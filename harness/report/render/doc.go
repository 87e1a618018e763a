// Package render reads what runs left in their folders, judges every history again, and writes what people and programs read of it:
// the page (index.html), the comment (summary.md), summary.json and junit.xml.
//
// What does not live here: how each of them looks (harness/report, harness/report/page), judging (harness/check).
package render
