package check

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

type value struct{ status, reason string }

func (x value) String() string { return x.status + "/" + x.reason }

// rollups is what the three rollups say together, and whom the message of KMSPluginsDegraded must name.
type rollups struct {
	degraded, available, progressing value
	named                            []string // "node/keyID" or "node", sorted
}

// scene is what an aggregator could see at one instant.
type scene struct {
	now      time.Time
	interval time.Duration
	expected map[string]bool // nodes
	reports  map[string]*report
	overdue  map[string]bool // expected nodes without a report whose grace is over
}

// reading settles what the contract leaves open. A rollup is right if it is right under one reading.
type reading struct {
	strangers bool // entries of nodes that are not expected count in the rows "any fresh entry"
	staleKeys bool // keyIDs in reports that are not fresh count as reported
	perReport bool // freshness in KMSPluginsProgressing is that of the report, not of the entry
}

func (s scene) fresh(at time.Time) bool { return !s.stale(at) && !s.skewed(at) }

// stale and skewed are the contract's freshness: both bounds are still fresh.
func (s scene) stale(at time.Time) bool  { return s.now.Sub(at) > 4*s.interval }
func (s scene) skewed(at time.Time) bool { return at.Sub(s.now) > s.interval }

// sound: the whole report can be believed.
func (s scene) sound(r *report) bool {
	for _, e := range r.entries {
		if !s.fresh(e.checked) {
			return false
		}
	}
	return r.problem == "" && len(r.entries) > 0
}

// table is the contract's table applied to the scene (contract, "The aggregator").
func (s scene) table(how reading) rollups {
	out := rollups{progressing: s.progressing(how)}
	out.degraded, out.named = s.degraded(how)
	out.available = s.available()
	return out
}

// degraded collects the affected by reason; the worst reason that has any decides.
func (s scene) degraded(how reading) (value, []string) {
	affected := map[string][]string{}
	add := func(reason, who string) { affected[reason] = append(affected[reason], who) }
	for node, r := range s.reports {
		if s.expected[node] || how.strangers {
			for _, e := range r.entries {
				switch {
				case !s.fresh(e.checked):
				case e.status == contract.StatusUnhealthy:
					add(contract.ReasonPluginUnhealthy, node+"/"+e.keyID)
				case e.status == contract.StatusError:
					add(contract.ReasonPluginUnreachable, node+"/"+e.keyID)
				}
			}
		}
	}
	for node := range s.expected {
		if reason := s.silence(node); reason != "" {
			add(reason, node)
		}
	}
	bad := append(affected[contract.ReasonPluginUnhealthy], affected[contract.ReasonPluginUnreachable]...)
	for _, row := range tableRows() {
		if who := affected[row.reason]; len(who) > 0 {
			if row.status == "True" {
				who = bad // the message names both kinds
			}
			sort.Strings(who)
			return row, who
		}
	}
	return value{"False", contract.ReasonAsExpected}, nil
}

// tableRows are the rows of the table in the contract's order.
func tableRows() []value {
	return []value{
		{"True", contract.ReasonPluginUnhealthy}, {"True", contract.ReasonPluginUnreachable},
		{"Unknown", contract.ReasonReportStale}, {"Unknown", contract.ReasonReportMalformed},
		{"Unknown", contract.ReasonClockSkew}, {"Unknown", contract.ReasonReportMissing},
		{"False", contract.ReasonAwaitingFirstReport},
	}
}

// silence is why nothing can be believed about an expected node now, empty if something can.
func (s scene) silence(node string) string {
	r := s.reports[node]
	switch {
	case r == nil && s.overdue[node]:
		return contract.ReasonReportMissing
	case r == nil:
		return contract.ReasonAwaitingFirstReport
	}
	skewed := false
	for _, e := range r.entries {
		if s.stale(e.checked) {
			return contract.ReasonReportStale
		}
		skewed = skewed || s.skewed(e.checked)
	}
	switch {
	case r.problem != "" || len(r.entries) == 0:
		return contract.ReasonReportMalformed
	case skewed:
		return contract.ReasonClockSkew
	}
	return ""
}

func (s scene) available() value {
	unknown := false
	for node := range s.expected {
		r := s.reports[node]
		if r == nil {
			unknown = unknown || s.overdue[node]
			continue
		}
		if len(r.entries) > 0 {
			if write := r.entries[0]; s.fresh(write.checked) && write.status != contract.StatusHealthy {
				return value{"False", contract.ReasonNoUsableWriteKey}
			}
		}
		unknown = unknown || !s.sound(r)
	}
	if unknown {
		return value{"Unknown", contract.ReasonWriteKeyUnknown}
	}
	return value{"True", contract.ReasonAsExpected}
}

func (s scene) progressing(how reading) value {
	keks, keys := map[string]map[string]bool{}, map[string]bool{}
	for node, r := range s.reports {
		if !s.expected[node] && !how.strangers {
			continue
		}
		for _, e := range r.entries {
			fresh := s.fresh(e.checked) && (!how.perReport || s.sound(r))
			if fresh || how.staleKeys {
				keys[e.keyID] = true
			}
			if fresh && e.kekID != "" {
				if keks[e.keyID] == nil {
					keks[e.keyID] = map[string]bool{}
				}
				keks[e.keyID][e.kekID] = true
			}
		}
	}
	for _, ids := range keks {
		if len(ids) > 1 {
			return value{"True", contract.ReasonKEKRotationInProgress}
		}
	}
	switch {
	case len(keys) > 1:
		return value{"True", contract.ReasonKeyMigrationInProgress}
	case s.converged(how):
		return value{"False", contract.ReasonAsExpected}
	}
	return value{"False", contract.ReasonNotConverged}
}

// converged: every expected node freshly reports the same healthy kekID for the same write key.
func (s scene) converged(how reading) bool {
	var first entry
	for node := range s.expected {
		r := s.reports[node]
		if r == nil || len(r.entries) == 0 || r.problem != "" {
			return false
		}
		e := r.entries[0]
		if !s.fresh(e.checked) || how.perReport && !s.sound(r) || e.status != contract.StatusHealthy || e.kekID == "" {
			return false
		}
		if first.keyID != "" && (first.keyID != e.keyID || first.kekID != e.kekID) {
			return false
		}
		first = e
	}
	return first.keyID != ""
}
