// Package survey says what each scenario is about without reading it: topology, faults, backends, how long it takes and which
// invariants it lets be judged. The last two come from a simulation, which takes milliseconds and is the same every time.
//
// What lives here: the survey, its table, and the map from the statements of the sources to scenarios (docs/catalogue.md). What does
// not: the scenarios (scenarios/catalogue), the statements (scenarios/statements.yaml).
package coverage
