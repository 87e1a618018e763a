package metrics

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Parse reads one scrape of the reporter on node: its plugins in the order of their keyIDs. Series of other nodes and
// metrics that are not the contract's are ignored.
func Parse(node string, from expfmt.Decoder) (*history.Metrics, error) {
	families := map[string]*dto.MetricFamily{}
	for {
		f := &dto.MetricFamily{}
		err := from.Decode(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("metrics of the reporter on %s: %w", node, err)
		}
		families[f.GetName()] = f
	}
	s := scrape{node: node, plugins: map[string]*history.PluginMetrics{}}
	s.each(families[contract.MetricHealthy], func(p *history.PluginMetrics, m *dto.Metric) {
		healthy := m.GetGauge().GetValue() == 1
		p.Healthy = &healthy
	})
	s.each(families[contract.MetricCallErrors], func(p *history.PluginMetrics, m *dto.Metric) {
		p.Errors = count(m.GetCounter().GetValue())
	})
	s.each(families[contract.MetricCallSeconds], func(p *history.PluginMetrics, m *dto.Metric) {
		p.Calls, p.Seconds = m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
	})
	out := &history.Metrics{Node: node, Plugins: []history.PluginMetrics{}}
	for _, keyID := range slices.Sorted(maps.Keys(s.plugins)) {
		out.Plugins = append(out.Plugins, *s.plugins[keyID])
	}
	return out, nil
}

type scrape struct {
	node    string
	plugins map[string]*history.PluginMetrics
}

// each calls f for every series of the node.
func (s scrape) each(family *dto.MetricFamily, f func(*history.PluginMetrics, *dto.Metric)) {
	for _, m := range family.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		keyID := labels["keyID"]
		if labels["node"] != s.node || keyID == "" {
			continue
		}
		if s.plugins[keyID] == nil {
			s.plugins[keyID] = &history.PluginMetrics{KeyID: keyID}
		}
		f(s.plugins[keyID], m)
	}
}

// count is a counter's value; anything that no counter can have is 0.
func count(v float64) uint64 {
	if math.IsNaN(v) || v < 0 || v > math.MaxInt64 {
		return 0
	}
	return uint64(v)
}
