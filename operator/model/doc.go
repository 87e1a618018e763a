// Package model tests an operator's decisions in a small model of a cluster: API servers with the configurations that
// they have loaded, objects with the key that encrypted them, plugins, reporters, a remote KMS, and random events.
//
// It has nothing but tests: the cluster, the laws that must hold after every event, and the conditions that must hold when
// the cluster is at rest. It makes no decisions: those are in operator/core, or in an operator that is wrong on purpose
// (wrong_test.go, scenarios/mutants/decisions). It is pure: a choose injects the randomness, from a property test or a seed.
//
// The model leaves out requests of clients that are refused while a plugin is down, and kekIDs that appear and
// disappear between two reports. KMS v2 forbids the latter, and no reader of reports could observe them.
package model
