package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeOperatorConvergence judges the annotations of the newest key Secret at the instant when they appear. An operator
// that switches the write key too early makes an API server write with a KEK that another node's plugin does not have.
// How long the operator waits, and what else it does, is not judged.
func judgeOperatorConvergence(v *facts.Facts) (f Finding) {
	var before history.Decision
	found := v.Run.Observed // what an observer finds at its beginning was noted at some time before
	for e := range v.Each(history.KindDecision) {
		d := *e.Decision
		if found {
			before, found = d, false
		}
		if d.Key != before.Key {
			before = history.Decision{Key: d.Key}
			judgeTarget(v, &f, e)
		}
		if d.ConvergedKEK != "" && d.ConvergedKEK != before.ConvergedKEK {
			judgeAgreed(v, &f, e, d.ConvergedKEK, Violation{Seen: "the operator notes that all nodes agree on kekID " + text.Quoted(d.ConvergedKEK)})
		}
		if d.MigratedKEK != "" && d.MigratedKEK != before.MigratedKEK && d.MigratedKEK == before.ConvergedKEK {
			judgeAgreed(v, &f, e, d.MigratedKEK, Violation{Rule: "attempt",
				Seen: "the operator notes that everything is encrypted under kekID " + text.Quoted(d.MigratedKEK) + ", on which it had noted that all nodes agree"})
		}
		if d.MigratedKEK != "" && d.MigratedKEK != before.MigratedKEK && len(d.Rewriting) > 0 {
			judgeRewritten(v, &f, e)
		}
		before = d
	}
	return f
}

// judgeRewritten judges what the operator notes while migrations are not over. Keys and migrations come by two watches: either may be late.
func judgeRewritten(v *facts.Facts, f *Finding, e *history.Event) {
	f.JudgedAt(e.At, e.At)
	for later := range v.Each(history.KindDecision) {
		if !later.At.Before(e.At) && !later.At.After(e.At.Add(v.Tolerance)) && later.Decision.Key == e.Decision.Key && len(later.Decision.Rewriting) == 0 {
			return
		}
	}
	f.Violate(Violation{Rule: "rewritten", At: e.At, Seq: e.Seq, KeyID: strconv.FormatUint(e.Decision.Key, 10),
		Seen:    "the operator notes that everything is encrypted under kekID " + text.Quoted(e.Decision.MigratedKEK) + ", while these StorageVersionMigrations for its key have not succeeded: " + strings.Join(e.Decision.Rewriting, ", "),
		Allowed: "when all of them have"})
}

// judgeTarget judges the kekID with which a key is made: API servers may write under it before any node has reported.
func judgeTarget(v *facts.Facts, f *Finding, e *history.Event) {
	if e.Decision.TargetKEK == "" {
		return
	}
	var checked history.Call
	seen, target := false, e.Decision.TargetKEK
	for c := range v.Each(history.KindCall) {
		if c.Call.Node == history.RolePreflight && c.Call.Method == "Status" && c.Call.Healthz == "ok" && c.Call.Ended.Before(e.At) {
			checked, seen = *c.Call, true
		}
	}
	f.JudgedAt(e.At, e.At)
	if !seen || !answeredKEK(&checked, target) {
		f.Violate(Violation{Rule: "target", At: e.At, Seq: e.Seq, KeyID: strconv.FormatUint(e.Decision.Key, 10), Seen: "the key is made for kekID " + sized(target, len(target)),
			Allowed: "that of the last pre-flight check, " + sized(checked.KEKID, facts.KEKBytes(&checked))})
	}
}

// answeredKEK compares the kekID of a call with a whole one. The history keeps the first bytes of a long kekID, and its size.
func answeredKEK(c *history.Call, kek string) bool {
	return len(kek) == facts.KEKBytes(c) && strings.HasPrefix(kek, c.KEKID)
}

// sized is a kekID with its size where that is not allowed: both texts of a violation may be cut to the same.
func sized(kek string, bytes int) string {
	if bytes <= contract.MaxKEKIDBytes {
		return text.Quoted(kek)
	}
	return fmt.Sprintf("%s of %d bytes", text.Quoted(kek), bytes)
}

// judgeAgreed adds x if the nodes did not agree on a kekID at any instant of which the operator may have known at e. It
// may act on what it read up to A plus tolerance ago, so one state of the CR in that window is enough.
func judgeAgreed(v *facts.Facts, f *Finding, e *history.Event, kek string, x Violation) {
	window, keyID, lacking := span.New(e.At, e.At).Grow(v.Latency(), v.Tolerance), strconv.FormatUint(e.Decision.Key, 10), ""
	for _, s := range readable(v, window) {
		for _, at := range []time.Time{span.Latest(window.From, s.From), e.At} {
			expected := v.Expectations.At(at)
			if !expected.Reports() {
				return
			}
			if lacking = disagreement(v, at, s.Reports(), expected.Nodes, keyID, kek); lacking == "" {
				f.JudgedAt(e.At, e.At)
				return
			}
		}
	}
	if lacking == "" {
		return // the CR was not seen yet
	}
	f.JudgedAt(e.At, e.At)
	x.At, x.Seq, x.KeyID, x.Seen = e.At, e.Seq, keyID, x.Seen+", while "+lacking
	x.Allowed = "when every expected node freshly reports it of a healthy plugin"
	f.Violate(x)
}

// readable has the states of the CR that could be read within a window, with From as the instant from which on that was possible.
func readable(v *facts.Facts, window span.Span) (out []facts.Snapshot) {
	for _, s := range v.CR.Snapshots {
		at := s.From
		if made := v.Requests.MadeBy[s.Object.ResourceVersion]; made != nil {
			s.From = span.Earliest(s.From, made.Received) // a reader may have had it before its writer did
		}
		if s.From.After(window.To) {
			break
		}
		if !at.After(window.From) {
			out = nil // it replaces those before
		}
		out = append(out, s)
	}
	return out
}

// disagreement returns the first node that does not freshly report the kekID of a healthy plugin, and what it reports
// instead; empty if there is none. An entry from before the creation of its node is of an earlier node of the same name,
// whose plugin may have had another KEK.
func disagreement(v *facts.Facts, at time.Time, reports map[string]*facts.Report, nodes map[string]history.ExpectedNode, keyID, kek string) string {
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		r := reports[node]
		if r == nil {
			return "there is no report of " + node
		}
		i := slices.IndexFunc(r.Entries, func(e facts.Entry) bool { return e.KeyID == keyID })
		if i < 0 || r.Problem != "" {
			return node + " reports nothing that can be read of the plugin " + keyID
		}
		switch e := r.Entries[i]; {
		case contract.FreshnessAt(at, e.Checked, v.Interval) != contract.Fresh:
			return "the report of " + node + " is from " + e.CheckedText
		case e.Checked.Add(e.Precision).Before(nodes[node].Since):
			return "the report is of an earlier node " + node
		case e.Status != contract.StatusHealthy:
			return node + " reports " + string(e.Status)
		case e.KEKID != kek:
			return node + " reports kekID " + text.Quoted(e.KEKID)
		}
	}
	return ""
}
