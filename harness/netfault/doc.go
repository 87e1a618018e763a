// Package netfault provides TCP links that can be cut, reset, delayed, muted and restored, and a simple load balancer of
// such links.
//
// It accepts, dials and breaks connections. It does not interpret their bytes (TLS ends at the API servers), and does
// not decide which links a control plane has. Package proxy makes one link a program.
//
// A connection keeps its two goroutines for each direction whatever the fault is, so a fault is in force at once, also for connections that exist, and
// without waiting for a peer that may be paused. All connections of a link share its rate.
package netfault
