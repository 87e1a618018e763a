// Package streams decides what the aggregator makes of reporters that stream: which stream speaks for a node, and what the
// EncryptionHealth shows (docs/contract.md, "Streaming"). It has no clock, network or goroutine; aggregator/controller
// serves the streams.
package streams
