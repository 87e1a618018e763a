// Package coverage describes each scenario in a table: topology, faults, backends.
//
// It has the table of scenarios and the table of the statements of the sources. The scenarios are in scenarios/catalogue, the statements in
// scenarios/statements.yaml.
package coverage
