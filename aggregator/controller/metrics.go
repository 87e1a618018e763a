package controller

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

type metrics struct {
	healthy  *prometheus.GaugeVec
	rollup   *prometheus.GaugeVec
	writes   *prometheus.CounterVec
	cleanups prometheus.Counter
	latency  prometheus.Histogram
	leader   prometheus.Gauge
	redials  prometheus.Counter
	shown    map[plugin]bool // series of healthy that exist
}

type plugin struct{ node, keyID string }

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		healthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kms_plugin_healthy",
			Help: "1 if the plugin's last report is fresh and healthy, else 0, for every plugin of an expected node.",
		}, []string{"node", "keyID"}),
		rollup: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kms_health_rollup",
			Help: "1 for the status that each rollup condition has, 0 for the others.",
		}, []string{"condition", "status"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kms_health_aggregator_writes_total",
			Help: "Writes to the API server, by target (rollup, cleanup, clusteroperator) and result (ok, error).",
		}, []string{"target", "result"}),
		cleanups: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kms_health_aggregator_cleanups_total",
			Help: "Reports removed because their node is gone or KMS is not active.",
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kms_health_aggregator_latency_seconds",
			Help:    "From the arrival of a change to the end of the write that it caused.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kms_health_aggregator_leader",
			Help: "1 while this process holds the lease.",
		}),
		redials: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kms_health_aggregator_redials_total",
			Help: "Times that all connections were closed because the API server gave no answer.",
		}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.healthy, m.rollup, m.writes, m.cleanups, m.latency, m.leader, m.redials} {
		errs = append(errs, r.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// show publishes what a step saw and decided. A plugin that is gone leaves no series behind, and a scrape never falls
// into a gap in which one that is still there has none.
func (m *metrics) show(in core.Input, d core.Decision) {
	now := plugins(in)
	for p, healthy := range now {
		m.healthy.WithLabelValues(p.node, p.keyID).Set(oneIf(healthy))
	}
	for p := range m.shown {
		if _, still := now[p]; !still {
			m.healthy.DeleteLabelValues(p.node, p.keyID)
		}
	}
	m.shown = make(map[plugin]bool, len(now))
	for p := range now {
		m.shown[p] = true
	}
	m.showRollups(d.Rollups)
}

// plugins is every reported plugin of an expected node, and whether it is freshly healthy.
func plugins(in core.Input) map[plugin]bool {
	out := map[plugin]bool{}
	for node, report := range in.Observed.Reports {
		if _, expected := in.Nodes[node]; !expected || !in.KMSActive {
			continue
		}
		for _, e := range report.Entries {
			fresh := contract.FreshnessAt(in.Now, e.LastChecked, in.Interval) == contract.Fresh
			out[plugin{node, e.KeyID}] = fresh && e.Status == contract.StatusHealthy
		}
	}
	return out
}

func (m *metrics) showRollups(rollups []core.Condition) {
	if len(rollups) == 0 {
		m.rollup.Reset()
	}
	for _, c := range rollups {
		for _, status := range []string{core.True, core.False, core.Unknown} {
			m.rollup.WithLabelValues(c.Type, status).Set(oneIf(c.Status == status))
		}
	}
}

// forget drops what only a leader may claim.
func (m *metrics) forget() {
	m.healthy.Reset()
	m.rollup.Reset()
	m.shown = nil
}

func (m *metrics) wrote(target string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(target, result).Inc()
}

func (m *metrics) cleaned(reports int) { m.cleanups.Add(float64(reports)) }

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
