// Package record holds the recorders of real backends, one per sub-package. Each turns one source (an audit log, a
// plugin's journal, an API server's log, a watch) into events of the history and does nothing else.
//
// A recorder is a pure conversion of one line or one object, and a thin edge that feeds it. Package tail is the edge
// of everything that is a file. What does not live here: starting the programs that write these sources
// (harness/controlplane, harness/backend/local) and judging what they say (harness/check).
package record

import "time"

// Sink receives what a recorder saw; *history.Log is one.
type Sink interface {
	Record(at time.Time, source string, payload any)
}
