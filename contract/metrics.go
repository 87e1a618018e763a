package contract

// Metrics of a reporter (docs/contract.md, "Metrics, alerts"), each with the labels node and keyID.
const (
	MetricCallSeconds = "kms_plugin_status_call_duration_seconds" // histogram
	MetricCallErrors  = "kms_plugin_status_call_errors_total"     // counter
	MetricHealthy     = "kms_plugin_healthy"                      // gauge, 1 or 0
)
