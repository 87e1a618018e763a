package contract

// Reasons of KMSPluginsDegraded, worst first (docs/contract.md, "The aggregator"). Where several apply, the first
// of this list is the rollup's reason and its message names the others too.
const (
	ReasonPluginUnhealthy     = "PluginUnhealthy"     // True
	ReasonPluginUnreachable   = "PluginUnreachable"   // True
	ReasonReportStale         = "ReportStale"         // Unknown
	ReasonReportMalformed     = "ReportMalformed"     // Unknown
	ReasonClockSkew           = "ClockSkew"           // Unknown
	ReasonReportMissing       = "ReportMissing"       // Unknown
	ReasonAwaitingFirstReport = "AwaitingFirstReport" // False
	ReasonAsExpected          = "AsExpected"          // False
)

// Reasons of KMSPluginsAvailable.
const (
	// ReasonNoUsableWriteKey: on some expected node no plugin for the write key is usable.
	ReasonNoUsableWriteKey = "NoUsableWriteKey"
	// ReasonWriteKeyUnknown: no write-key plugin is known to be unusable, but for some node nothing fresh is known.
	ReasonWriteKeyUnknown = "WriteKeyUnknown"
)

// Reasons of KMSPluginsProgressing. The two True reasons are the contract's; the False ones tell a rotation
// controller whether it may go on: AsExpected means converged, NotConverged means that some expected node does not
// freshly and healthily agree although no change is known to be under way.
const (
	ReasonKEKRotationInProgress  = "KEKRotationInProgress"  // True
	ReasonKeyMigrationInProgress = "KeyMigrationInProgress" // True
	ReasonNotConverged           = "NotConverged"           // False
)
