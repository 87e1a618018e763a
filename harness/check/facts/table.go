package facts

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Value is status and reason of a rollup.
type Value struct{ Status, Reason string }

func (x Value) String() string { return x.Status + "/" + x.Reason }

// Rollups is what the three rollups say together, and whom the message of KMSPluginsDegraded must name.
type Rollups struct {
	Degraded, Available, Progressing Value
	Named                            []string // "node/keyID" or "node", sorted
}

func (r Rollups) equal(o Rollups) bool {
	return r.Degraded == o.Degraded && r.Available == o.Available && r.Progressing == o.Progressing && slices.Equal(r.Named, o.Named)
}

// scene is what an aggregator could see at one instant: the reports on the CR, the nodes that should report, and a
// clock.
type scene struct {
	now      time.Time
	interval time.Duration
	Expectation
	reports map[string]*Report
	overdue func(node string) bool // of an expected node without a report: its grace is over
}

// reading settles what the contract leaves open. A rollup is right if it is right under one reading. The sources do
// not say whether reports of unexpected nodes count, nor what a stale report still tells.
type reading struct {
	strangers bool // entries of nodes that are not expected count in the rows "any fresh entry"
	staleKeys bool // keyIDs in reports that are not fresh count as reported
	perReport bool // freshness in KMSPluginsProgressing is that of the report, not of the entry
}

func (s scene) fresh(at time.Time) bool { return !s.stale(at) && !s.skewed(at) }

// stale and skewed are the contract's freshness (contract.FreshnessAt). Exactly 4 I old, and exactly I in the future, is
// still fresh.
func (s scene) stale(at time.Time) bool  { return s.now.Sub(at) > 4*s.interval }
func (s scene) skewed(at time.Time) bool { return at.Sub(s.now) > s.interval }

// sound: the whole report can be believed.
func (s scene) sound(r *Report) bool {
	doubtful := func(e Entry) bool { return !s.fresh(e.Checked) }
	return r.Problem == "" && len(r.Entries) > 0 && !slices.ContainsFunc(r.Entries, doubtful)
}

// table is the contract's table applied to the scene (contract, "The aggregator").
func (s scene) table(how reading) Rollups {
	out := Rollups{Progressing: s.progressing(how)}
	out.Degraded, out.Named = s.degraded(how)
	out.Available = s.available()
	return out
}

// counted are the reports by node that count in the rows "any fresh entry".
func (s scene) counted(how reading) map[string]*Report {
	out := maps.Clone(s.reports)
	maps.DeleteFunc(out, func(node string, _ *Report) bool { return !s.expects(node) && !how.strangers })
	return out
}

// degraded collects the affected nodes and plugins by reason; the worst reason that has any decides. The order of
// tableRows is the order of severity. True outranks Unknown, so that a silent node does not hide a plugin that is known
// to fail.
func (s scene) degraded(how reading) (Value, []string) {
	affected := map[string][]string{}
	add := func(reason, who string) { affected[reason] = append(affected[reason], who) }
	for node, r := range s.counted(how) {
		for _, e := range r.Entries {
			switch {
			case !s.fresh(e.Checked):
			case e.Status == contract.StatusUnhealthy:
				add(contract.ReasonPluginUnhealthy, node+"/"+e.KeyID)
			case e.Status == contract.StatusError:
				add(contract.ReasonPluginUnreachable, node+"/"+e.KeyID)
			}
		}
	}
	for node := range s.Nodes {
		if reason := s.silence(node); reason != "" {
			add(reason, node)
		}
	}
	bad := append(affected[contract.ReasonPluginUnhealthy], affected[contract.ReasonPluginUnreachable]...)
	for _, row := range tableRows() {
		if who := affected[row.Reason]; len(who) > 0 {
			if row.Status == "True" {
				who = bad // the message names both kinds
			}
			sort.Strings(who)
			return row, who
		}
	}
	return Value{"False", contract.ReasonAsExpected}, nil
}

// tableRows are the rows of the table in the contract's order.
func tableRows() []Value {
	return []Value{
		{"True", contract.ReasonPluginUnhealthy}, {"True", contract.ReasonPluginUnreachable},
		{"Unknown", contract.ReasonReportStale}, {"Unknown", contract.ReasonReportMalformed},
		{"Unknown", contract.ReasonClockSkew}, {"Unknown", contract.ReasonReportMissing},
		{"False", contract.ReasonAwaitingFirstReport},
	}
}

// silence returns why nothing can be believed about an expected node now; empty if something can. One stale entry
// makes the report stale (HA-OLDEST-ENTRY).
func (s scene) silence(node string) string {
	r := s.reports[node]
	switch {
	case r == nil && s.overdue(node):
		return contract.ReasonReportMissing
	case r == nil:
		return contract.ReasonAwaitingFirstReport
	}
	skewed := false
	for _, e := range r.Entries {
		if s.stale(e.Checked) {
			return contract.ReasonReportStale
		}
		skewed = skewed || s.skewed(e.Checked)
	}
	switch {
	case r.Problem != "" || len(r.Entries) == 0:
		return contract.ReasonReportMalformed
	case skewed:
		return contract.ReasonClockSkew
	}
	return ""
}

func (s scene) available() Value {
	unknown := false
	for node := range s.Nodes {
		if r := s.reports[node]; r != nil && len(r.Entries) > 0 && s.fresh(r.Entries[0].Checked) && r.Entries[0].Status != contract.StatusHealthy {
			return Value{"False", contract.ReasonNoUsableWriteKey}
		}
		reason := s.silence(node)
		unknown = unknown || reason != "" && reason != contract.ReasonAwaitingFirstReport
	}
	if unknown {
		return Value{"Unknown", contract.ReasonWriteKeyUnknown}
	}
	return Value{"True", contract.ReasonAsExpected}
}

func (s scene) progressing(how reading) Value {
	keks, keys, rotated := map[string]string{}, map[string]bool{}, false
	for _, r := range s.counted(how) {
		for _, e := range r.Entries {
			fresh := s.fresh(e.Checked) && (!how.perReport || s.sound(r))
			if fresh || how.staleKeys {
				keys[e.KeyID] = true
			}
			if fresh && e.KEKID != "" {
				other, known := keks[e.KeyID]
				rotated = rotated || known && other != e.KEKID
				keks[e.KeyID] = e.KEKID
			}
		}
	}
	switch {
	case rotated:
		return Value{"True", contract.ReasonKEKRotationInProgress}
	case len(keys) > 1:
		return Value{"True", contract.ReasonKeyMigrationInProgress}
	case s.converged(how):
		return Value{"False", contract.ReasonAsExpected}
	}
	return Value{"False", contract.ReasonNotConverged}
}

// converged: every expected node freshly reports the same healthy kekID for the same write key.
func (s scene) converged(how reading) bool {
	var first Entry
	for node := range s.Nodes {
		r := s.reports[node]
		if r == nil || len(r.Entries) == 0 || r.Problem != "" {
			return false
		}
		e := r.Entries[0]
		if !s.fresh(e.Checked) || how.perReport && !s.sound(r) || e.Status != contract.StatusHealthy || e.KEKID == "" {
			return false
		}
		if first.KeyID != "" && (first.KeyID != e.KeyID || first.KEKID != e.KEKID) {
			return false
		}
		first = e
	}
	return first.KeyID != ""
}
