// Package reporter runs a reporter for real: the loop around reporter/core, its logs, its metrics and health endpoint,
// and the choice of its API server. It decides nothing about reports.
//
// One reporter serves one API server pod. Its rooms: core decides, probe asks the plugins, publish writes, metrics
// counts, options is the command line.
package reporter
