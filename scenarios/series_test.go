package scenarios_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// series is one metric of one plugin, a value for each scrape, as Prometheus would have scraped it during a run.
type series struct {
	Name, Node, KeyID, Le string // Le of a bucket only
	Values                []string
}

// absentSeries is a scrape in which the series is not there.
const absentSeries = "_"

// slowSeconds is the bucket's bound that alerts look at, in seconds.
const slowSeconds = 5

// scrapedPlugin is what a reporter says of a plugin at one time.
type scrapedPlugin struct {
	history.PluginMetrics
	quick uint64 // calls of at most slowSeconds
}

// seriesOf scrapes the reporters of a history every so often, from its first event to its last.
func seriesOf(events []history.Event, every time.Duration) []series {
	if len(events) == 0 {
		return nil
	}
	events = history.About(events, "") // the names of metrics do not tell API servers apart
	s := scraper{now: map[[2]string]scrapedPlugin{}, out: map[[3]string]*series{}}
	at := events[0].At
	for _, e := range events {
		for ; !e.At.Before(at); at = at.Add(every) {
			s.scrape()
		}
		if e.Metrics != nil {
			s.observe(*e.Metrics)
		}
	}
	s.scrape()
	return slices.SortedFunc(maps.Values(deref(s.out)), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node), cmp.Compare(a.KeyID, b.KeyID), cmp.Compare(a.Le, b.Le))
	})
}

func deref(in map[[3]string]*series) map[[3]string]series {
	out := map[[3]string]series{}
	for k, v := range in {
		out[k] = *v
	}
	return out
}

type scraper struct {
	now     map[[2]string]scrapedPlugin
	out     map[[3]string]*series
	scrapes int
}

// observe counts the calls since the last event as quick or slow: by their mean, which is exact where each has an event.
func (s *scraper) observe(m history.Metrics) {
	for _, p := range m.Plugins {
		key := [2]string{m.Node, p.KeyID}
		before := s.now[key]
		if p.Calls < before.Calls { // the reporter was restarted
			before = scrapedPlugin{}
		}
		quick := before.quick
		if calls := p.Calls - before.Calls; calls > 0 && (p.Seconds-before.Seconds)/float64(calls) <= slowSeconds {
			quick += calls
		}
		s.now[key] = scrapedPlugin{p, quick}
	}
}

func (s *scraper) scrape() {
	for key, p := range s.now {
		if p.Healthy != nil {
			value := "0"
			if *p.Healthy {
				value = "1"
			}
			s.add(contract.MetricHealthy, key, "", value)
		}
		s.add(contract.MetricCallErrors, key, "", fmt.Sprint(p.Errors))
		s.add(contract.MetricCallSeconds+"_count", key, "", fmt.Sprint(p.Calls))
		s.add(contract.MetricCallSeconds+"_bucket", key, fmt.Sprint(slowSeconds), fmt.Sprint(p.quick))
	}
	s.scrapes++
}

func (s *scraper) add(name string, key [2]string, le, value string) {
	id := [3]string{name, key[0], key[1]}
	if s.out[id] == nil {
		s.out[id] = &series{Name: name, Node: key[0], KeyID: key[1], Le: le}
	}
	one := s.out[id]
	for len(one.Values) < s.scrapes {
		one.Values = append(one.Values, absentSeries)
	}
	one.Values = append(one.Values, value)
}

// Selector is the series as rule tests name it.
func (s series) Selector() string {
	le := ""
	if s.Le != "" {
		le = fmt.Sprintf(", le=%q", s.Le)
	}
	return fmt.Sprintf("%s{job=\"reporter\", node=%q, keyID=%q%s}", s.Name, s.Node, s.KeyID, le)
}

// Notation is the values as rule tests write them: equal neighbours are 1x2, which is three times 1.
func (s series) Notation() string {
	var words []string
	for i := 0; i < len(s.Values); {
		n := 1
		for i+n < len(s.Values) && s.Values[i+n] == s.Values[i] {
			n++
		}
		word := s.Values[i]
		switch {
		case word == absentSeries && n > 1:
			word = fmt.Sprintf("_x%d", n)
		case n > 1:
			word = fmt.Sprintf("%sx%d", word, n-1)
		}
		words = append(words, word)
		i += n
	}
	return strings.Join(words, " ")
}

func TestSeriesOfAHistory(t *testing.T) {
	yes, no := true, false
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int, p ...history.PluginMetrics) history.Event {
		return history.Event{At: began.Add(time.Duration(s) * time.Second), Metrics: &history.Metrics{Node: "cp-1", Plugins: p}}
	}
	got := seriesOf([]history.Event{
		{At: began},
		at(31, history.PluginMetrics{KeyID: "1"}),
		at(40, history.PluginMetrics{KeyID: "1", Healthy: &yes, Calls: 1, Seconds: 1}),
		at(70, history.PluginMetrics{KeyID: "1", Healthy: &no, Calls: 2, Errors: 1, Seconds: 11}),
		at(100, history.PluginMetrics{KeyID: "1", Healthy: &no, Calls: 3, Errors: 2, Seconds: 21}),
		at(130, history.PluginMetrics{KeyID: "1", Healthy: &yes, Calls: 1, Seconds: 1}), // restarted
		{At: began.Add(150 * time.Second)},
	}, 30*time.Second)
	want := map[string]string{
		`kms_plugin_healthy{job="reporter", node="cp-1", keyID="1"}`:                                     "_x2 1 0x1 1x1",
		`kms_plugin_status_call_errors_total{job="reporter", node="cp-1", keyID="1"}`:                    "_x2 0 1 2 0x1",
		`kms_plugin_status_call_duration_seconds_count{job="reporter", node="cp-1", keyID="1"}`:          "_x2 1 2 3 1x1",
		`kms_plugin_status_call_duration_seconds_bucket{job="reporter", node="cp-1", keyID="1", le="5"}`: "_x2 1x4",
	}
	if len(got) != len(want) {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	for _, s := range got {
		if s.Notation() != want[s.Selector()] {
			t.Errorf("%s: %s, want %s", s.Selector(), s.Notation(), want[s.Selector()])
		}
	}
	if seriesOf(nil, time.Second) != nil {
		t.Error("series of nothing")
	}
}
