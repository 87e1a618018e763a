// Package coverage describes each scenario in a table: topology, faults, backends, duration, and the invariants that
// judge it. A simulation determines the last two, in milliseconds and always with the same result.
//
// It has the table, and the map from the statements of the sources to scenarios (docs/catalogue.md). The scenarios are
// in scenarios/catalogue, the statements in scenarios/statements.yaml.
package coverage
