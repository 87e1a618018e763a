// Package dashboard holds a Grafana dashboard of plugins, reporters and aggregator, and the test that it and the alerting rules
// (ci/alerts) name only metrics that the programs have.
//
// What does not live here: whether the rules fire when they should, which ci/alerts tests.
package dashboard

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// dashboard is as much of Grafana's format as the test reads.
type dashboard struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
	Vars   struct {
		List []struct {
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// metric is what the programs say of one of their metrics.
type metric struct {
	kind   string // counter, gauge, histogram
	labels []string
}

// problems says what is wrong with a dashboard.
func problems(text []byte, known map[string]metric) (out []string) {
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return []string{"not a dashboard: " + err.Error()}
	}
	var queries []string
	for _, v := range d.Vars.List {
		queries = append(queries, v.Definition)
	}
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			out = append(out, fmt.Sprintf("panel %q asks for nothing, expected a query", p.Title))
		}
		for _, t := range p.Targets {
			queries = append(queries, t.Expr)
		}
	}
	for _, q := range queries {
		out = append(out, unknown(q, known)...)
	}
	return out
}

var (
	name     = regexp.MustCompile(`\bkms_[a-z0-9_]+`)
	matched  = regexp.MustCompile(`\b(kms_[a-z0-9_]+)\{([^}]*)\}`)
	label    = regexp.MustCompile(`([A-Za-z_]+)\s*(?:=~|!~|!=|=)`)
	suffixes = []string{"_bucket", "_sum", "_count"}
)

// unknown says which metrics and labels of a query the programs do not have.
func unknown(query string, known map[string]metric) (out []string) {
	for _, n := range name.FindAllString(query, -1) {
		if _, ok := find(n, known); !ok {
			out = append(out, fmt.Sprintf("%s: there is no metric %s", query, n))
		}
	}
	for _, m := range matched.FindAllStringSubmatch(query, -1) {
		of, ok := find(m[1], known)
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if ok && l[1] != "job" && !slices.Contains(of.labels, l[1]) {
				out = append(out, fmt.Sprintf("%s: %s has no label %s, only %s", query, m[1], l[1], strings.Join(of.labels, ", ")))
			}
		}
	}
	return out
}

// find is a metric by its name, or that of one of a histogram's series.
func find(name string, known map[string]metric) (metric, bool) {
	if m, ok := known[name]; ok {
		return m, m.kind != "histogram"
	}
	for _, suffix := range suffixes {
		if m, ok := known[strings.TrimSuffix(name, suffix)]; ok && strings.HasSuffix(name, suffix) && m.kind == "histogram" {
			if suffix == "_bucket" {
				m.labels = append(slices.Clone(m.labels), "le")
			}
			return m, true
		}
	}
	return metric{}, false
}
