// Package stream sends reports to the aggregator instead of writing them (docs/contract.md, "Streaming"). Rounds and
// Outbox decide; Publisher carries it out with gRPC.
package stream
