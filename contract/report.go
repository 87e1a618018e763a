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

// StaleIntervals is how many intervals a report may age. It is derived, never configured apart: three lost writes
// are tolerated, the fourth is news.
const StaleIntervals = 4

// Freshness of a report at an instant.
type Freshness string

const (
	Fresh  Freshness = "fresh"
	Stale  Freshness = "stale"
	Skewed Freshness = "skewed" // checked in the future, beyond what jitter and rounding explain
)

// StaleAfter is the age beyond which a report is stale.
func StaleAfter(interval time.Duration) time.Duration { return StaleIntervals * interval }

// FreshnessAt judges a lastChecked at now. Both bounds are inclusive: exactly 4 intervals old is fresh, exactly one
// interval ahead is fresh.
func FreshnessAt(now, lastChecked time.Time, interval time.Duration) Freshness {
	age := now.Sub(lastChecked)
	switch {
	case age < -interval:
		return Skewed
	case age > StaleAfter(interval):
		return Stale
	default:
		return Fresh
	}
}

// Limits of a report. The typed API's CRD validates the *whole* apply, so one value beyond its limit would silence
// every plugin of the node; both forms therefore keep to the typed API's limits (github.com/openshift/api,
// operator/v1 KMSPluginHealthReport).
const (
	// MaxDetailChars bounds detail, in code points.
	MaxDetailChars = 1024
	// MaxKEKIDBytes bounds a usable key_id (KMS v2: at most 1 KiB). Bytes bound code points, so a key_id within
	// it also fits the typed API, which counts code points.
	MaxKEKIDBytes = 1024
	// MaxKeyIDChars bounds keyID, in code points.
	MaxKeyIDChars = 512
	// MaxTypedReports is how many entries the typed list holds for all nodes together.
	MaxTypedReports = 200
	// MaxEntries bounds the plugins of one node in one report. Two is the most that a migration needs.
	MaxEntries = 32
	// MaxReportBytes bounds what the report of one node occupies on the CR, in either form: status, reason and message of
	// its condition, or the texts of its items. etcd refuses an object of more than 1.5 MiB, to every writer of it.
	MaxReportBytes = 64 << 10
	// MaxMessageBytes bounds a condition's message; the rest of MaxReportBytes is for status and reason.
	MaxMessageBytes = MaxReportBytes - 1<<10
	// MaxFieldManagers bounds the field managers that own a part of one node's entry: each has a record in the CR's managedFields.
	MaxFieldManagers = 4
	// MaxRollupMessageChars bounds a rollup's message; what does not fit is counted ("and N more").
	MaxRollupMessageChars = 4096
)

// UnknownKEKID stands in the typed form, where remoteKeyID is required, for a plugin that never reported one.
const UnknownKEKID = "unknown"
