// Package engine runs a scenario on an environment: the healthy control before, the timeline of steps, the healing and
// the control after.
//
// It sees the environment only through the events of the history, as everybody who reads the history later does; it
// does to the environment only what the scenario says, and afterwards what undoes that. One goroutine decides
// everything; actions run beside it and report back through the history. Time and waiting are behind Runtime, so that a
// simulator drives the same engine in virtual time.
//
// What does not live here: what must hold in every run (harness/check), how an action is carried out (harness/backend),
// how results look (harness/report).
package engine
