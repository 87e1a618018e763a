// Package server serves a plugin on its socket by gRPC and carries out what the fault program decides: it waits, fails,
// falsifies answers, breaks connections and takes the socket away. What goes wrong when is decided in package fault;
// every call is recorded in the journal.
package server
