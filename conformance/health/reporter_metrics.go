package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterMetrics are the rules about metrics. They are not supported without {metricsAddress}.
func reporterMetrics() []Check {
	const source = sourceMetrics + " (S3-16)"
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-METRIC-HEALTHY", Profile: conformance.Extended, Title: "kms_plugin_healthy is 1 or 0",
				Rule: "kms_plugin_healthy of each node and keyID is 1 while the plugin is healthy, and 0 otherwise.", Source: source,
				Consequence: "The alert KMSPluginUnhealthy does not fire.",
			},
			Claims: []Claim{ofMetrics("steps[0].expect", "steps[4].expect")},
		},
		{
			Check: conformance.Check{
				ID: "HR-METRIC-ERRORS", Profile: conformance.Extended, Title: "Errors of calls are counted, answers are not",
				Rule: "kms_plugin_status_call_errors_total counts calls that failed, and not answers that say unhealthy.", Source: source,
				Consequence: "A plugin that does not answer cannot be distinguished from an unhealthy one.",
			},
			Claims: []Claim{ofMetrics("steps[2].expect", "steps[7].holds")},
		},
		{
			Check: conformance.Check{
				ID: "HR-METRIC-DURATION", Profile: conformance.Extended, Title: "The duration of calls is measured",
				Rule: "kms_plugin_status_call_duration_seconds has the time of each call, also of those that ran into the deadline.", Source: source,
				Consequence: "The alert KMSPluginStatusCallLatencyHigh does not fire.",
			},
			Claims: []Claim{ofMetrics("steps[6].expect")},
		},
	}
}

// ofMetrics claims expectations of metrics. Where they are not judged, a step may still have expectations of something else.
func ofMetrics(ids ...string) Claim {
	c := step("observability-metrics", ids...)
	c.Text = "metrics["
	return c
}
