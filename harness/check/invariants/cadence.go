package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Each node's reporter is judged by itself. The nodes are those on which a reporter process was seen, also where it
// never wrote.
func judgeCadence(v *facts.Facts) (f Finding) {
	var nodes []string
	for _, p := range v.Processes.OfRole(history.RoleReporter) {
		nodes = append(nodes, p.Node)
	}
	for _, node := range slices.Compact(nodes) {
		judgeSlow(v, &f, node)
		judgeOmitted(v, &f, node)
		if !v.Run.Observed { // watches do not show that two reporters of a node overlap in a handover
			judgeFast(v, &f, node, ticksOf(v, node), "writes", "too-frequent", v.Reporters.Runs(node))
		}
		judgeTries(v, &f, node)
		judgeLockstep(v, &f, node)
	}
	return f
}

// judgeSlow judges the gaps between two successful writes, and before the first and after the last one, while the
// reporter could write. The bound is CadenceMax, I + J + R + W: a tick may come late by J, its slowest probe takes R,
// and its write W.
func judgeSlow(v *facts.Facts, f *Finding, node string) {
	bound := v.CadenceMax() + v.Tolerance
	for _, able := range v.Reporters.Writing(node) {
		ends := []time.Time{able.From}
		for _, w := range v.Reporters.Writes(node) {
			if w.To.After(able.From) && !w.To.After(able.To) {
				ends = append(ends, w.To)
			}
		}
		for i, until := range append(ends, able.To)[1:] {
			last := ends[i]
			f.JudgedAt(last, until)
			if until.Sub(last) > bound {
				f.Violate(Violation{Rule: "silent", At: last.Add(bound), From: last, To: last.Add(bound), Node: node, Allowed: "a successful write within " + text.Short(bound),
					Seen: "the reporter of " + node + " wrote nothing for " + text.Short(until.Sub(last)) + " while it could write" + longRound(v, node, span.New(last, until))})
			}
		}
	}
}

// judgeOmitted: each tick brings a write, whether anything has changed or not. A tick comes after I + J at the latest,
// and at the latest that long after the write before was done. A write that failed was tried. So many writes in a row
// are judged: by two, one that takes a bit less than the bound of judgeSlow each time, and by seven or nine, one that
// omits every third. A single gap below CadenceMax proves nothing, since R and W are used up only if probes or writes
// are slow. Over several ticks their real time is known from the journals, so that a bound of k (I + J) and what the
// rounds took is tight.
func judgeOmitted(v *facts.Facts, f *Finding, node string) {
	if v.Run.Connectivity == history.ConnectStream {
		return // the aggregator writes
	}
	if v.Run.Observed { // a try that failed is not seen: one of seven is allowed for
		f.omitted(v, node, v.Reporters.Writes(node), 7)
		return
	}
	var tried []facts.Write
	for _, r := range v.Requests.Tried[node] {
		tried = append(tried, facts.WriteOf(r))
	}
	slices.SortStableFunc(tried, func(a, b facts.Write) int { return a.From.Compare(b.From) })
	for _, sustained := range []int{2, 7, 9} {
		f.omitted(v, node, tried, sustained)
	}
}

func (f *Finding) omitted(v *facts.Facts, node string, tried []facts.Write, sustained int) {
	t, able, runs := v.Run.Timing, v.Reporters.Writing(node), v.Reporters.Runs(node)
	for i := 0; i+sustained < len(tried); i++ {
		first, last := tried[i], tried[i+sustained]
		during := span.New(first.From, last.From)
		if !able.Covers(during) || !slices.ContainsFunc(runs, func(run span.Span) bool { return span.Set{run}.Covers(during) }) {
			continue
		}
		most, silent := time.Duration(sustained)*(t.Interval+t.Jitter)+t.ProbeTimeout+t.WriteTimeout+v.Tolerance, false
		for n, r := range tried[i : i+sustained] {
			silent = silent || tried[i+n+1].From.Sub(r.From) > t.CadenceMax()+v.Tolerance
			took := t.ProbeTimeout + t.WriteTimeout
			if probed := v.Plugins.ProbedAt(node, r.Entries); !probed.IsZero() && probed.Before(r.To) {
				took = min(took, r.To.Sub(probed))
			}
			most += took
		}
		if silent {
			continue // judgeSlow
		}
		f.judgedIn(during)
		if during.Length() > most {
			f.Violate(Violation{At: last.From, From: first.From, To: first.From.Add(most), Seq: last.Seq, Node: node, Allowed: "a write for each tick: so many within " + text.Short(most),
				Seen: fmt.Sprintf("the reporter of %s wrote %d times within %s while it could write", node, sustained, text.Short(during.Length()))})
			i += sustained - 1
		}
	}
}

// judgeFast judges the rate over 1, 2, 4 … 32 writes: k of them need k ticks, at least I − J apart. Ticks cannot be
// seen, only the writes that follow them after up to R + W: one early write proves nothing, and over k writes R + W
// counts once.
func judgeFast(v *facts.Facts, f *Finding, node string, writes []facts.Write, what, rule string, runs []span.Span) {
	late := v.ProbeTimeout + v.WriteTimeout
	for _, run := range runs {
		at := slices.DeleteFunc(slices.Clone(writes), func(w facts.Write) bool { return !run.Contains(w.From) })
		for k := 1; k <= 32; k *= 2 {
			least := time.Duration(k)*v.CadenceMin() - late - v.Tolerance
			for i := 0; i+k < len(at); i++ {
				first, last := at[i].From, at[i+k].From
				f.JudgedAt(first, last)
				if took := last.Sub(first); took < least {
					f.Violate(Violation{Rule: rule, At: last, Since: first.Add(-late), Seq: at[i+k].Seq, Node: node, Seen: fmt.Sprintf("%d %s of %s within %s after one", k, what, node, text.Short(took)),
						Allowed: "no fewer than " + text.Short(least) + " for so many (I − J each)"})
				}
			}
		}
	}
}

// ticksOf are the writes that a tick brought. A reporter that streams reports again what it has reported, or could not, whenever a new stream stands
// (docs/contract.md, "Streaming"): there each result counts once, from its probe on.
func ticksOf(v *facts.Facts, node string) []facts.Write {
	if v.Run.Connectivity != history.ConnectStream {
		return v.Reporters.Writes(node)
	}
	out := slices.CompactFunc(slices.Clone(v.Reporters.Writes(node)), func(a, b facts.Write) bool { return slices.Equal(a.Entries, b.Entries) })
	for i := range out {
		if probed := v.Plugins.ProbedAt(node, out[i].Entries); !probed.IsZero() && probed.Before(out[i].From) {
			out[i].From = probed
		}
	}
	return out
}

// judgeTries judges that a refused reporter does not try more often than others write. A client library that retries by
// itself (client-go does after Retry-After) is judged too: an overloaded API server sees its requests.
func judgeTries(v *facts.Facts, f *Finding, node string) {
	var tries []facts.Write
	for _, r := range v.Requests.Tried[node] {
		refused := func(x facts.Refusal) bool {
			return x.Answers(r, history.RoleReporter) || x.Affects(history.RoleReporter) && x.Code == r.Code && x.To.Equal(r.At)
		}
		if slices.ContainsFunc(v.Refusals.All, refused) {
			tries = append(tries, facts.Write{Span: span.New(r.Received, r.At), Seq: r.Seq})
		}
	}
	if len(tries) == 0 {
		return
	}
	slices.SortStableFunc(tries, func(a, b facts.Write) int { return a.From.Compare(b.From) })
	// What an API server or a connection held back comes all at once.
	able := v.Reporters.Reaching(node).Settled(v.WriteTimeout + v.Tolerance)
	for _, run := range v.Reporters.Runs(node) {
		judgeFast(v, f, node, tries, "tries to write", "tries", able.Clip(run))
	}
}

// Where the ticks of a reporter can be told from its writes, so many gaps in a row that differ by no more than this part of the jitter
// were not drawn: of even draws over twice the jitter not one sequence in 10^13 is like that.
const (
	lockstepGaps = 12
	lockstepPart = 10
)

// judgeLockstep judges that ticks have jitter. Without it, reporters that were started together, as in a roll-out, write
// to the same object at the same time for ever.
func judgeLockstep(v *facts.Facts, f *Finding, node string) {
	jitter := v.Jitter
	if jitter <= 0 {
		return
	}
	writes, able := v.Reporters.Writes(node), v.Reporters.Able(node)
	for _, run := range v.Reporters.Runs(node) {
		var gaps []time.Duration
		for i := 1; i < len(writes); i++ {
			a, b := writes[i-1], writes[i]
			if !run.Contains(a.From) || !run.Contains(b.From) || !able.Covers(span.New(a.From, b.From)) || !waited(v, a, b) {
				gaps = nil
				continue
			}
			if gaps = append(gaps, b.From.Sub(a.From)); len(gaps) < lockstepGaps {
				continue
			}
			last := gaps[len(gaps)-lockstepGaps:]
			f.Judged++
			if spread := slices.Max(last) - slices.Min(last); spread <= jitter/lockstepPart {
				f.Violate(Violation{Rule: "lockstep", At: b.From, Since: writes[i-lockstepGaps].From, Seq: b.Seq, Node: node,
					Seen:    fmt.Sprintf("the last %d writes of %s follow each other at intervals that differ by %s", lockstepGaps, node, spread),
					Allowed: "ticks that are moved by up to " + text.Short(jitter) + " each, so that reporters which were started together do not go on writing together"})
				gaps = nil
			}
		}
	}
}

// waited: between two writes the reporter waited for its tick. One that is kept busy by slow plugins and slow writes begins the next
// tick as soon as it can, and shows no jitter although it has one.
func waited(v *facts.Facts, a, b facts.Write) bool {
	return b.From.Sub(a.To) > v.ProbeTimeout && b.From.Sub(a.From) <= v.Interval+v.Jitter+v.Tolerance
}

// longRound describes what made a round of probes take too long, where the journals of the node's plugins show it: a
// Status call that went on after its deadline, or calls that were made in turn and not concurrently. It is empty
// otherwise. It explains a violation and judges nothing. The API server of the node calls Status as well, so a call
// counts only where no other one of the plugin overlaps it.
func longRound(v *facts.Facts, node string, gap span.Span) string {
	deadline, tolerance := v.ProbeTimeout, v.Tolerance
	var calls []*history.Call
	for _, t := range v.Plugins.All {
		for _, p := range t.Probes {
			if t.Node == node && !p.Clip(gap).Empty() {
				calls = append(calls, p.Call)
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b *history.Call) int { return a.Began.Compare(b.Began) })
	// beganIn reports whether another call of the same plugin began: the reporter's, where c is that of an API server.
	beganIn := func(keyID string, c *history.Call, from, to time.Time) bool {
		return slices.ContainsFunc(calls, func(o *history.Call) bool {
			return o != c && o.KeyID == keyID && !o.Began.Before(from) && o.Began.Before(to)
		})
	}
	inTurn := ""
	for _, c := range calls {
		took := c.Ended.Sub(c.Began)
		if took > deadline+deadline/10+tolerance && !beganIn(c.KeyID, c, c.Began, c.Ended) {
			return ": its Status call of plugin " + c.KeyID + " went on for " + text.Short(took) + ", and the deadline of each is " + text.Short(deadline)
		}
		soon := c.Ended.Add(deadline/10 + tolerance)
		if inTurn != "" || took < deadline/2 || beganIn(c.KeyID, c, c.Ended, soon) {
			continue
		}
		next := slices.IndexFunc(calls, func(o *history.Call) bool {
			return o.KeyID != c.KeyID && !o.Began.Before(c.Ended) && o.Began.Before(soon) && !beganIn(o.KeyID, o, c.Began.Add(-tolerance), c.Ended)
		})
		if next >= 0 {
			inTurn = ": it calls Status of its plugins in turn and not concurrently, plugin " + calls[next].KeyID + " when the call of plugin " + c.KeyID + " has ended"
		}
	}
	return inTurn
}
