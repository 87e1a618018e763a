// Package coverage describes each scenario in a table: topology, faults, backends.
//
// It has the table, and the map from the statements of the sources to scenarios (docs/catalogue.md). The scenarios are
// in scenarios/catalogue, the statements in scenarios/statements.yaml.
package coverage
