// Package timeline shows what a verdict found in the form of the monitor tests of openshift-tests.
package timeline

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Interval is a span of time in the form in which the monitor tests of openshift-tests (openshift/origin, pkg/monitor) write theirs, so that the
// timelines of a job show it beside all others.
type Interval struct {
	Level   string    `json:"level"` // Info, Warning or Error
	Display bool      `json:"display"`
	Source  string    `json:"source"`
	Locator Locator   `json:"locator"`
	Message Message   `json:"message"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
}

// Locator is what an interval is about: {Node, node: NAME} or {ClusterOperator, clusteroperator: NAME}.
type Locator struct {
	Type string            `json:"type"`
	Keys map[string]string `json:"keys"`
}

// Message has the code of the rule that is violated, or the condition's reason.
type Message struct {
	Reason       string            `json:"reason"`
	Cause        string            `json:"cause"`
	HumanMessage string            `json:"humanMessage"`
	Annotations  map[string]string `json:"annotations"`
}

// shown is how long an instant is, which would have no width in a timeline.
const shown = time.Second

// Of is the violations of a verdict, as errors, and, as warnings, for how long each condition that ends in Degraded was True; in order of
// their beginnings. The ClusterOperator is what they are about unless they name a node.
func Of(events []history.Event, v check.Verdict, clusterOperator string) (out []Interval) {
	out = []Interval{}
	about := Locator{"ClusterOperator", map[string]string{"clusteroperator": clusterOperator}}
	add := func(level string, of Locator, reason, text string, from, to time.Time) {
		out = append(out, Interval{level, true, "KMSHealth", of, Message{reason, "", text, map[string]string{"reason": reason}}, from.UTC().Truncate(time.Second), to.UTC().Truncate(time.Second)})
	}
	for _, r := range v.Invariants {
		for _, x := range r.Violations {
			of := about
			if x.Node != "" {
				of = Locator{"Node", map[string]string{"node": x.Node}}
			}
			add("Error", of, strings.TrimSuffix(r.ID+"/"+x.Rule, "/"), x.Seen+"; allowed: "+x.Allowed, x.At, x.At.Add(shown))
		}
	}
	type degraded struct {
		history.Condition
		since time.Time
	}
	open := map[string]degraded{} // by object and type
	end := func(name string, at time.Time) {
		add("Warning", about, open[name].Reason, open[name].Type+": "+open[name].Message, open[name].since, at)
		delete(open, name)
	}
	var last time.Time
	for _, e := range events {
		last = e.At
		if e.Object == nil {
			continue
		}
		for _, c := range e.Object.Conditions {
			name := e.Object.Resource + "/" + e.Object.Name + "/" + c.Type
			if was, is := open[name]; is && (c.Status != "True" || c.Reason != was.Reason) {
				end(name, e.At)
			}
			if _, is := open[name]; !is && c.Status == "True" && strings.HasSuffix(c.Type, "Degraded") {
				open[name] = degraded{*c, e.At}
			}
		}
	}
	for name := range open {
		end(name, last)
	}
	slices.SortStableFunc(out, func(a, b Interval) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Message.Reason, b.Message.Reason), cmp.Compare(a.Message.HumanMessage, b.Message.HumanMessage))
	})
	return out
}

// Write writes intervals as the file of a monitor test: {items: [...]}.
func Write(w io.Writer, list []Interval) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "    ")
	return e.Encode(map[string]any{"items": list})
}
