// Package series computes the series that Prometheus would have scraped from the reporters during a run, as input of
// rule tests. It is pure and independent of the alerts.
package series

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Series is one metric of one plugin, a value for each scrape.
type Series struct {
	Name, Node, KeyID, Le string // Le of a bucket only
	Values                []string
}

// None is a scrape in which the series is not there.
const None = "_"

// slow is the bucket's bound that alerts look at, in seconds.
const slow = 5

// plugin is what a reporter says of a plugin at one time.
type plugin struct {
	history.PluginMetrics
	quick uint64 // calls of at most slow seconds
}

// Of scrapes the reporters of a history every so often, from its first event to its last.
func Of(events []history.Event, every time.Duration) []Series {
	if len(events) == 0 {
		return nil
	}
	events = history.About(events, "") // the names of metrics do not tell API servers apart
	s := scraper{now: map[[2]string]plugin{}, out: map[[3]string]*Series{}}
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
	return slices.SortedFunc(maps.Values(deref(s.out)), func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node), cmp.Compare(a.KeyID, b.KeyID), cmp.Compare(a.Le, b.Le))
	})
}

func deref(in map[[3]string]*Series) map[[3]string]Series {
	out := map[[3]string]Series{}
	for k, v := range in {
		out[k] = *v
	}
	return out
}

type scraper struct {
	now     map[[2]string]plugin
	out     map[[3]string]*Series
	scrapes int
}

// observe counts the calls since the last event as quick or slow: by their mean, which is exact where each has an event.
func (s *scraper) observe(m history.Metrics) {
	for _, p := range m.Plugins {
		key := [2]string{m.Node, p.KeyID}
		before := s.now[key]
		if p.Calls < before.Calls { // the reporter was restarted
			before = plugin{}
		}
		quick := before.quick
		if calls := p.Calls - before.Calls; calls > 0 && (p.Seconds-before.Seconds)/float64(calls) <= slow {
			quick += calls
		}
		s.now[key] = plugin{p, quick}
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
		s.add(contract.MetricCallSeconds+"_bucket", key, fmt.Sprint(slow), fmt.Sprint(p.quick))
	}
	s.scrapes++
}

func (s *scraper) add(name string, key [2]string, le, value string) {
	id := [3]string{name, key[0], key[1]}
	if s.out[id] == nil {
		s.out[id] = &Series{Name: name, Node: key[0], KeyID: key[1], Le: le}
	}
	one := s.out[id]
	for len(one.Values) < s.scrapes {
		one.Values = append(one.Values, None)
	}
	one.Values = append(one.Values, value)
}

// Selector is the series as rule tests name it.
func (s Series) Selector() string {
	le := ""
	if s.Le != "" {
		le = fmt.Sprintf(", le=%q", s.Le)
	}
	return fmt.Sprintf("%s{job=\"reporter\", node=%q, keyID=%q%s}", s.Name, s.Node, s.KeyID, le)
}

// Notation is the values as rule tests write them: equal neighbours are 1x2, which is three times 1.
func (s Series) Notation() string {
	var words []string
	for i := 0; i < len(s.Values); {
		n := 1
		for i+n < len(s.Values) && s.Values[i+n] == s.Values[i] {
			n++
		}
		word := s.Values[i]
		switch {
		case word == None && n > 1:
			word = fmt.Sprintf("_x%d", n)
		case n > 1:
			word = fmt.Sprintf("%sx%d", word, n-1)
		}
		words = append(words, word)
		i += n
	}
	return strings.Join(words, " ")
}
