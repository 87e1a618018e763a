// Package netfault provides TCP links that can be cut, reset, delayed, muted and restored, and a simple load balancer of
// such links.
//
// It accepts, dials and breaks connections. It does not interpret their bytes (TLS ends at the API servers), and does
// not decide which links a control plane has. Package proxy makes one link a program.
//
// The bytes of a connection pass toxiproxy's pipeline with one toxic of this package, which every connection has from
// its beginning to its end. Toxiproxy's own proxy is not used: it can neither reset existing connections nor choose
// between upstreams, and adding or removing a toxic while data flows waits for a peer that may be paused. Its bandwidth and
// latency toxics are per connection, and are in force only once they have been added; here all connections of a link share
// its rate. None of its toxics loses single segments or one direction.
package netfault
