package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// neverForget adds nodes to its set and never takes one out, as a handler does that has an add and an update function
// and no delete function. A removed node stays expected: its report is never cleaned up, and is counted until it is
// stale and for ever after. The function belongs to one aggregator and is called by one goroutine.
func neverForget() func(core.Input, core.Memory) core.Decision {
	nodes := map[string]time.Time{}
	return func(in core.Input, m core.Memory) core.Decision {
		maps.Copy(nodes, in.Nodes)
		in.Nodes = maps.Clone(nodes)
		return core.Step(in, m)
	}
}

// watchOnce lets every watch be made once. One that breaks is asked for again and never answered, as with a loop over the channel of a
// watch that is left when the channel closes: what the aggregator knows of changes ends with its first connection.
func watchOnce(c *controller.Config) {
	c.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return &watches{next: next} })
}

// watches remembers which ones were made.
type watches struct {
	next http.RoundTripper
	made sync.Map
}

// RoundTrip implements http.RoundTripper.
func (w *watches) RoundTrip(r *http.Request) (*http.Response, error) {
	if query := r.URL.Query(); query.Has("watch") {
		if _, again := w.made.LoadOrStore(r.URL.Path+"?"+query.Get("fieldSelector"), true); again {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	return w.next.RoundTrip(r)
}

// otherReasons is right by the sources, and has other reasons than this project has decided on: a subject that passes, and fails with --strict.
func otherReasons() func(core.Input, core.Memory) core.Decision {
	const mark = "Here"
	words := []string{contract.ReasonPluginUnhealthy, contract.ReasonPluginUnreachable, contract.ReasonReportStale, contract.ReasonReportMalformed, contract.ReasonClockSkew,
		contract.ReasonReportMissing, contract.ReasonAwaitingFirstReport, contract.ReasonNoUsableWriteKey, contract.ReasonWriteKeyUnknown,
		contract.ReasonKEKRotationInProgress, contract.ReasonKeyMigrationInProgress, contract.ReasonNotConverged}
	var there, back []string
	for _, w := range words {
		there, back = append(there, w, w+mark), append(back, w+mark, w)
	}
	say := strings.NewReplacer(append(there, contract.ReasonAsExpected, contract.ReasonAsExpected+mark)...)
	read := strings.NewReplacer(append(back, contract.ReasonAsExpected+mark, contract.ReasonAsExpected)...)
	united := strings.NewReplacer(there...)
	changed := func(all []core.Condition, by *strings.Replacer, which func(kind string) bool) []core.Condition {
		all = slices.Clone(all)
		for i := range all {
			if which(all[i].Type) {
				all[i].Reason = by.Replace(all[i].Reason)
			}
		}
		return all
	}
	rollups := func(kind string) bool { return slices.Contains(contract.RollupTypes(), kind) }
	any := func(string) bool { return true }
	return func(in core.Input, m core.Memory) core.Decision {
		in.Observed.Conditions = changed(in.Observed.Conditions, read, rollups)
		in.ClusterOperator = changed(in.ClusterOperator, read, any)
		d := core.Step(in, m)
		d.Rollups = changed(d.Rollups, say, rollups)
		d.ClusterOperator = changed(d.ClusterOperator, united, any)
		return d
	}
}
