// Package metrics records the metrics of reporters (docs/contract.md, "Metrics, alerts"). It parses the text format;
// expectations and alerts judge the values.
package metrics
