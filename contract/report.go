package contract

import "time"

// Status is the outcome of one probe.
type Status string

const (
	// StatusHealthy: the plugin answered healthz "ok" with a usable key_id and version.
	StatusHealthy Status = "healthy"
	// StatusUnhealthy: the plugin answered, and the answer is not good.
	StatusUnhealthy Status = "unhealthy"
	// StatusError: the plugin did not answer (RPC error, deadline, no response).
	StatusError Status = "error"
)

// Valid says whether s is one of the three outcomes.
func (s Status) Valid() bool {
	return s == StatusHealthy || s == StatusUnhealthy || s == StatusError
}

// Entry is the last probe of one plugin instance. KeyID (the number in the socket's name) and KEKID (the remote
// key that the plugin reports) are different things; see docs/contract.md, "Names".
type Entry struct {
	KeyID       string
	KEKID       string // empty when the plugin did not report a usable one
	Status      Status
	LastChecked time.Time // the instant of this probe, not of the write
	Detail      string    // empty when healthy
}

// Report is everything one reporter said in one write.
type Report struct {
	Node    string
	Entries []Entry // in the order of the reporter's flags: the write key first
}

// Oldest is the earliest LastChecked of the report: freshness is decided by the entry that is worst off, so that
// one stuck probe cannot hide behind the others. It is the zero time for an empty report.
func (r Report) Oldest() time.Time {
	var oldest time.Time
	for i, e := range r.Entries {
		if i == 0 || e.LastChecked.Before(oldest) {
			oldest = e.LastChecked
		}
	}
	return oldest
}
