// Package netfault provides TCP links that can be cut, reset, slowed, made mute and healed, and a simple load balancer of such links.
//
// What lives here: accepting, dialling and failing connections. What does not: what flows
// through them (TLS ends at the API servers), and which links a control plane has. Package proxy
// makes one link a program.
//
// The bytes of a connection go through toxiproxy's pipeline with one toxic of our own, which every connection has from
// its beginning to its end. Toxiproxy's own proxy is not used: it can neither reset connections that exist nor choose
// between upstreams, and adding or removing a toxic while data flows waits for a peer that may be paused.
package netfault
