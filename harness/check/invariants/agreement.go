package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// agreement is what an aggregator that judges agreement alone had to go by.
type agreement struct {
	*facts.Facts
	able  span.Set      // when it could look at the reports and write
	bound time.Duration // from a change to what it says of it
	parts []agreed
}

// agreed says for a span in which no entry changes or becomes too old whether those that are young enough agree.
type agreed struct {
	span.Span
	is      bool
	entries []*contract.TypedReport // those, and older ones
}

func agreementOf(v *facts.Facts) agreement {
	a := agreement{Facts: v, bound: v.Profile.Resync + v.WriteTimeout + v.Tolerance, able: v.Aggregator.Able.Intersect(v.CR.Seen()).Intersect(v.Expectations.KMSActive())}
	for _, s := range v.CR.Snapshots {
		cuts := []time.Time{s.From, s.To}
		for _, t := range s.Object.HealthReports {
			if at := a.prunedAt(t); at.After(s.From) && at.Before(s.To) {
				cuts = append(cuts, at)
			}
		}
		slices.SortFunc(cuts, time.Time.Compare)
		for n := range cuts[1:] {
			a.parts = append(a.parts, a.of(s.Object.HealthReports, span.New(cuts[n], cuts[n+1])))
		}
	}
	return a
}

// prunedAt is when an entry is old enough to be removed, by its own time.
func (a agreement) prunedAt(t *contract.TypedReport) time.Time {
	at, _, _ := facts.ParseInstant(t.LastCheckedTime)
	return at.Add(a.Profile.PruneAfter)
}

func (a agreement) of(entries []*contract.TypedReport, s span.Span) agreed {
	out, ids := agreed{Span: s, is: true, entries: entries}, map[string]string{}
	for _, t := range entries {
		if !s.From.Before(a.prunedAt(t)) {
			continue
		}
		id, known := ids[t.KeyID]
		out.is = out.is && t.RemoteKeyID != "" && (!known || id == t.RemoteKeyID)
		ids[t.KeyID] = t.RemoteKeyID
	}
	return out
}

// explained is when a condition may rest on a part: until the bound after it ended.
func (a agreement) explained(ok func(agreed) bool) span.Set {
	return span.Grown(span.Where(a.parts, ok), a.Tolerance, a.bound)
}

// judgeConverged judges each state of the Progressing condition by the entries that stood within its bound before.
func judgeConverged(v *facts.Facts) (f Finding) {
	a := agreementOf(v)
	judged := a.able.Settled(a.bound)
	for _, s := range v.CR.Of(contract.ConditionConvergenceProgressing) {
		in := judged.Clip(s.Span)
		if len(in) == 0 {
			continue
		}
		f.judgedThrough(in)
		says := s.Value != nil && s.Value.Status != "True"
		wrong := in
		if s.Value != nil {
			wrong = in.Intersect(a.explained(func(p agreed) bool { return p.is == says }).Complement(v.Period))
		}
		for _, w := range wrong {
			stood, _ := span.Last(a.parts, w.From)
			f.Violate(Violation{Rule: map[bool]string{true: "missed", false: "settled"}[says || s.Value == nil], At: w.From, From: w.From.Add(-a.bound), To: w.From, Seq: s.Seq,
				Seen: text.Condition(s.Value) + ", for " + text.Short(a.bound) + " after the entries were: " + strings.Join(a.named(stood), ", "), Allowed: "True while entries of one keyID name different remote key ids, else False"})
		}
		if s.Value != nil && s.Value.Status == "True" && a.able.Contains(s.From) && !a.names(s.Value, s.From) {
			f.Violate(Violation{Rule: "names", At: s.From, Seq: s.Seq, Seen: text.Condition(s.Value), Allowed: contract.ReasonReportsNotConverged + ", and a message with each node, keyID and remote key id"})
		}
	}
	return f
}

// names reports whether a condition has the reason, and names all entries of some time within the bound before.
func (a agreement) names(c *history.Condition, at time.Time) bool {
	unnamed := func(entry string) bool {
		who, id, _ := strings.Cut(entry, " ")
		return !strings.Contains(c.Message, who) || !strings.Contains(c.Message, id)
	}
	window := span.New(at.Add(-a.bound), at.Add(a.Tolerance))
	return c.Reason == contract.ReasonReportsNotConverged && slices.ContainsFunc(a.parts, func(p agreed) bool {
		return !p.Clip(window).Empty() && !p.is && !slices.ContainsFunc(a.named(p), unnamed)
	})
}

// judgeDegradedAfter judges the Degraded condition by the Progressing one as it stood, so that a wrong one is not reported twice.
func judgeDegradedAfter(v *facts.Facts) (f Finding) {
	a := agreementOf(v)
	after, progressing := v.Profile.DegradedAfter, span.Where(v.CR.Of(contract.ConditionConvergenceProgressing), isTrue)
	degraded := span.Where(v.CR.Of(contract.ConditionConvergenceDegraded), isTrue)
	for _, s := range progressing.Intersect(a.able) {
		f.judgedIn(s)
	}
	// A transition time has whole seconds.
	allowed := span.Grown(progressing.Settled(after-time.Second-v.Tolerance), 0, a.bound)
	for _, early := range degraded.Intersect(a.able).Intersect(allowed.Complement(v.Period)) {
		f.Violate(Violation{Rule: "early", At: early.From, Seen: contract.ConditionConvergenceDegraded + " is True", Allowed: "True once " + contract.ConditionConvergenceProgressing + " has been True for " + text.Short(after)})
	}
	for _, due := range progressing.Settled(after + a.bound).Intersect(a.able.Settled(a.bound)) {
		for _, late := range (span.Set{due}).Intersect(degraded.Complement(v.Period)) {
			f.Violate(Violation{Rule: "late", At: late.From, From: due.From.Add(-a.bound), To: due.From, Seen: contract.ConditionConvergenceDegraded + " is not True, and " + contract.ConditionConvergenceProgressing + " has been for " + text.Short(after+a.bound),
				Allowed: "True"})
		}
	}
	return f
}

// named are the entries of a part that are young enough: NODE/KEYID and the remote key id.
func (a agreement) named(p agreed) (names []string) {
	for _, t := range p.entries {
		if p.From.Before(a.prunedAt(t)) {
			names = append(names, t.NodeName+"/"+t.KeyID+" "+t.RemoteKeyID)
		}
	}
	return names
}

// judgePruned judges each state of an entry that outlives its time, and each removal by the aggregator.
func judgePruned(v *facts.Facts) (f Finding) {
	a, since := agreementOf(v), map[contract.TypedReport]time.Time{}
	for _, s := range v.CR.Snapshots {
		gone := since
		since = map[contract.TypedReport]time.Time{}
		for _, t := range s.Object.HealthReports {
			since[*t] = s.From
			if from, stood := gone[*t]; stood {
				since[*t] = from
			}
			delete(gone, *t)
		}
		a.judgeGone(&f, s, gone)
	}
	a.judgeGone(&f, facts.Snapshot{Span: span.New(v.Period.To, v.Period.To), Object: &history.Object{}}, since)
	return f
}

// judgeGone judges entries that stood from a time until a state of the CR, which has them no more.
func (a agreement) judgeGone(f *Finding, s facts.Snapshot, gone map[contract.TypedReport]time.Time) {
	made := a.Requests.MadeBy[s.Object.ResourceVersion]
	for _, t := range slices.SortedFunc(maps.Keys(gone), func(x, y contract.TypedReport) int {
		return strings.Compare(x.NodeName+"/"+x.KeyID, y.NodeName+"/"+y.KeyID)
	}) {
		old := a.prunedAt(&t)
		entry := fmt.Sprintf("the entry %s/%s of %s", t.NodeName, t.KeyID, t.LastCheckedTime)
		for _, stood := range a.able.Clip(span.New(span.Latest(gone[t], old), s.From)) {
			f.judgedIn(stood)
			if to := stood.From.Add(a.bound); to.Before(stood.To) {
				f.Violate(Violation{Rule: "late", At: to, From: stood.From, To: to, Node: t.NodeName, KeyID: t.KeyID, Seen: entry + " still stands", Allowed: "removed " + text.Short(a.Profile.PruneAfter) + " after it was checked"})
			}
		}
		replaced := slices.ContainsFunc(s.Object.HealthReports, func(o *contract.TypedReport) bool { return o.NodeName == t.NodeName && o.KeyID == t.KeyID })
		if made == nil || !made.ByAggregator() || replaced || !a.Clocks.Settled("").Contains(s.From) {
			continue
		}
		f.JudgedAt(s.From, s.From)
		if s.From.Before(old.Add(-a.Tolerance)) {
			f.Violate(Violation{Rule: "early", At: s.From, Seq: s.Seq, Node: t.NodeName, KeyID: t.KeyID, Seen: "the aggregator removed " + entry, Allowed: "not before it is " + text.Short(a.Profile.PruneAfter) + " old"})
		}
	}
}
