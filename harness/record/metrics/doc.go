// Package metrics records what reporters say of plugins on their metrics endpoint (docs/contract.md, "Metrics, alerts").
// It reads the text format; what the numbers should be is for expectations and for alerts to say.
package metrics
