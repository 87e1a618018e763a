// Package server serves a plugin on its socket by gRPC and carries out the decisions of package fault: it delays or
// fails calls, changes answers, breaks connections and removes the socket. It records every call in the journal.
package server
