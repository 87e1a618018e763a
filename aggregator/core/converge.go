package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// Converge decides as an aggregator of the profile convergence: it judges whether the entries of each keyID in the typed form name one remote key id, and
// removes old entries. It looks neither at the health of plugins nor at which nodes should report. While KMS is not active, it leaves entries alone.
func Converge(in Input, m Memory) Decision {
	p := contract.AggregatorProfileOf(contract.AggregatorConvergence)
	d := Decision{NextWake: in.Now.Add(p.Resync), Memory: m}
	var kept []contract.TypedReport
	if !in.KMSActive {
		in.Observed.Reports = nil
	}
	for _, node := range slices.Sorted(maps.Keys(in.Observed.Reports)) {
		for _, t := range in.Observed.Reports[node].Typed {
			at, err := contract.ParseTime(t.LastCheckedTime)
			switch {
			case err != nil: // the CRD admits none
			case at.After(in.Now.Add(-p.PruneAfter)):
				kept = append(kept, t)
				d.NextWake = sooner(d.NextWake, at.Add(p.PruneAfter))
			default:
				d.Remove.Entries = append(d.Remove.Entries, t)
			}
		}
	}
	progressing := Condition{Type: contract.ConditionConvergenceProgressing, Status: False, Reason: contract.ReasonAsExpected}
	degraded := Condition{Type: contract.ConditionConvergenceDegraded, Status: False, Reason: contract.ReasonAsExpected}
	if !agree(kept) {
		progressing.Status, progressing.Reason, progressing.Message = True, contract.ReasonReportsNotConverged, notConverged(kept)
		if since, ok := find(in.Observed.Conditions, progressing.Type); ok && since.Status == True {
			if due := since.LastTransitionTime.Add(p.DegradedAfter); in.Now.Before(due) {
				d.NextWake = sooner(d.NextWake, due)
			} else {
				degraded.Status, degraded.Reason, degraded.Message = True, progressing.Reason, progressing.Message
			}
		}
	}
	d.Rollups, d.WriteRollups = settle([]Condition{progressing, degraded}, in.Observed.Conditions, in.Now)
	return d
}

// agree reports whether the entries of each keyID name the same remote key id.
func agree(entries []contract.TypedReport) bool {
	first := map[string]string{}
	for _, t := range entries {
		id, known := first[t.KeyID]
		if t.RemoteKeyID == "" || known && id != t.RemoteKeyID {
			return false
		}
		first[t.KeyID] = t.RemoteKeyID
	}
	return true
}

func notConverged(entries []contract.TypedReport) string {
	names := make([]string, len(entries))
	for i, t := range entries {
		names[i] = fmt.Sprintf("%s/%s=%q", t.NodeName, t.KeyID, t.RemoteKeyID)
	}
	return "remote key ids differ: " + strings.Join(names, ", ")
}
