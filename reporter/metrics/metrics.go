// Package metrics counts what a reporter sees and does, for Prometheus. The three kms_plugin_* metrics are the
// contract's (docs/contract.md, "Metrics, alerts"); the kms_health_reporter_* ones tell how the reporter itself fares.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Metrics of one reporter.
type Metrics struct {
	registry *prometheus.Registry
	node     string

	callSeconds *prometheus.HistogramVec
	callErrors  *prometheus.CounterVec
	healthy     *prometheus.GaugeVec

	writes       *prometheus.CounterVec
	writeSeconds *prometheus.HistogramVec
	drops        *prometheus.CounterVec
	lastWrite    *prometheus.GaugeVec
}

// New makes the metrics of the reporter on node for the plugins keyIDs. Every series exists from the start, so that
// an alert can tell zero from unknown; only kms_plugin_healthy waits for the first probe.
func New(node string, keyIDs []string) *Metrics {
	plugin, self := []string{"node", "keyID"}, []string{"node"}
	m := &Metrics{registry: prometheus.NewRegistry(), node: node,
		callSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: contract.MetricCallSeconds, Help: "Duration of Status calls to a KMS plugin, failed ones included.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10}, // 5 s is the default deadline and the alert's threshold
		}, plugin),
		callErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: contract.MetricCallErrors, Help: "Status calls that brought no answer (RPC error, deadline, nil response).",
		}, plugin),
		healthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: contract.MetricHealthy, Help: "1 if the last Status call found the KMS plugin healthy, else 0.",
		}, plugin),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kms_health_reporter_writes_total", Help: "Writes of a report to the API server, by outcome.",
		}, []string{"node", "outcome"}),
		writeSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kms_health_reporter_write_duration_seconds", Help: "Duration of writes of a report, failed ones included.",
			Buckets: []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10},
		}, self),
		drops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kms_health_reporter_results_dropped_total", Help: "Probe results that were too old to be written, by reason.",
		}, []string{"node", "reason"}),
		lastWrite: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kms_health_reporter_last_write_timestamp_seconds", Help: "Unix time of the last write that the API server took.",
		}, self),
	}
	m.registry.MustRegister(m.callSeconds, m.callErrors, m.healthy, m.writes, m.writeSeconds, m.drops, m.lastWrite)
	m.prepare(keyIDs)
	return m
}

func (m *Metrics) prepare(keyIDs []string) {
	for _, keyID := range keyIDs {
		m.callSeconds.WithLabelValues(m.node, keyID)
		m.callErrors.WithLabelValues(m.node, keyID)
	}
	for _, o := range publish.Outcomes() {
		m.writes.WithLabelValues(m.node, string(o))
	}
	for _, why := range []core.DropReason{core.DropLate, core.DropOlder} {
		m.drops.WithLabelValues(m.node, string(why))
	}
	m.writeSeconds.WithLabelValues(m.node)
}

// Probed counts one probe and what it means.
func (m *Metrics) Probed(r core.Result, e contract.Entry) {
	m.callSeconds.WithLabelValues(m.node, r.KeyID).Observe(r.Duration.Seconds())
	if e.Status == contract.StatusError {
		m.callErrors.WithLabelValues(m.node, r.KeyID).Inc()
	}
	healthy := 0.0
	if e.Status == contract.StatusHealthy {
		healthy = 1
	}
	m.healthy.WithLabelValues(m.node, r.KeyID).Set(healthy)
}

// Wrote counts one write that ended at now.
func (m *Metrics) Wrote(o publish.Outcome, took time.Duration, now time.Time) {
	m.writes.WithLabelValues(m.node, string(o)).Inc()
	m.writeSeconds.WithLabelValues(m.node).Observe(took.Seconds())
	if o == publish.Applied {
		m.lastWrite.WithLabelValues(m.node).Set(float64(now.UnixMilli()) / 1000)
	}
}

// Dropped counts results that were not written.
func (m *Metrics) Dropped(why core.DropReason) { m.drops.WithLabelValues(m.node, string(why)).Inc() }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})
}
