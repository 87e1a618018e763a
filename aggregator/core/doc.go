// Package core decides what an aggregator says and removes. Step is a function of values: the operator's CR as it was
// read, the nodes that should report, whether KMS is active, what the previous step remembered, and the instant. It
// has no clock, no network, no goroutine and no randomness.
//
// What carries a decision out (informers, Server-Side Apply, leader election, retries) is aggregator/controller.
package core
