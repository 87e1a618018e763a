package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// accepted is the form that costs least, or text.
const accepted = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.5"

// maxScrape bounds one answer in bytes: a hundred times what a reporter with eight plugins says.
const maxScrape = 1 << 20

// Recorder scrapes one reporter and records what it says whenever that has changed. A reporter that does not answer is
// no event: why it does not is told by the events of its process.
type Recorder struct {
	Sink record.Sink
	Node string
	URL  string
	// Client bounds a scrape by its Timeout.
	Client *http.Client

	last *history.Metrics
}

// Run scrapes at every tick until ctx ends.
func (r *Recorder) Run(ctx context.Context, tick <-chan time.Time) {
	poll.Each(ctx, tick, func() { _ = r.Scrape(ctx) })
}

// Scrape scrapes once.
func (r *Recorder) Scrape(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return fmt.Errorf("scrape %s: %w", r.URL, err)
	}
	req.Header.Set("Accept", accepted)
	resp, err := r.Client.Do(req)
	if err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("scrape %s: %s, expected 200 OK", r.URL, resp.Status)
	}
	m, err := Parse(r.Node, expfmt.NewDecoder(io.LimitReader(resp.Body, maxScrape), expfmt.ResponseFormat(resp.Header)))
	if err != nil {
		return fmt.Errorf("scrape %s: %w", r.URL, err)
	}
	if !reflect.DeepEqual(m, r.last) {
		r.last = m
		r.Sink.Record(time.Now(), "metrics/"+r.Node, m)
	}
	return nil
}

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
