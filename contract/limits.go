package contract

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
