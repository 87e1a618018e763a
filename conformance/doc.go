// Package conformance describes what a conformance suite of this project checks, and what it found.
//
// A suite is a list of checks. Each check has a stable id, a rule in one sentence and the source of the rule. A run of a suite gives one Result
// for each check, and a Report for the whole run, which is written as YAML and can be read, compared and rendered by anyone. The suites are in
// packages below this one: package plugin certifies KMS v2 plugins.
package conformance
