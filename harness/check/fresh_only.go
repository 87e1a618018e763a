package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func freshOnly() Invariant {
	return Invariant{
		ID:        "FRESH-ONLY",
		Statement: "no write carries a probe older than one interval plus its deadlines: nothing is queued",
		Source:    "The reporter, emission",
		Timed:     AllTimed,
		Judge:     judgeFreshOnly,
	}
}

func judgeFreshOnly(v *Facts) (f Finding) {
	bound := v.run.Timing.MaxProbeAge() + v.tolerance()
	for _, node := range v.objects.reportingNodes() {
		held, trickling := heldBack(v, node), trickled(v)
		delivered := map[time.Time]int64{} // by the beginning of what held it back: the late write
		writes := v.requests.writesOf(node)
		for i, w := range writes {
			if i+1 < len(writes) {
				judgeKept(v, &f, node, w, writes[i+1], held, trickling, delivered)
			}
			for _, e := range w.entries {
				at, known := v.clocks.instant(node, e)
				if !known {
					continue
				}
				e.checked = at
				f.JudgedAt(w.from, w.from)
				limit := bound + slowest(v, node, span{e.checked, w.from})
				age := w.from.Sub(e.checked.Add(e.precision))
				if age <= limit || trickling.touches(span{e.checked, w.from}) || wasUnderWay(v, node, w, e.checked, held, delivered) {
					continue
				}
				f.Violate(Violation{At: w.from, From: e.checked, To: e.checked.Add(limit), Seq: w.seq, Node: node, KeyID: e.keyID, Seen: "a write carries the probe of " + e.checkedText + ", " + short(age) + " old",
					Allowed: "at most " + short(limit) + " old (I + R + W and tolerance)"})
			}
		}
	}
	return f
}

// judgeKept: a reporter probes again when a write has ended, or was given up. So one that was received after the probes of the next one had begun was kept
// meanwhile, or was under way.
func judgeKept(v *Facts, f *Finding, node string, w, next write, held, trickling spans, delivered map[time.Time]int64) {
	probed, probedNext := v.plugins.probedAt(node, w), v.plugins.probedAt(node, next)
	if probed.IsZero() || !probedNext.After(probed) { // MONOTONIC judges what goes back
		return
	}
	slack := v.tolerance() + slowest(v, node, span{probed, w.from})
	f.JudgedAt(w.from, w.from)
	if !w.from.After(probedNext.Add(slack)) || trickling.touches(span{probed, w.from}) || wasUnderWay(v, node, w, probed, held, delivered) {
		return
	}
	f.Violate(Violation{At: w.from, From: probedNext, To: probedNext.Add(slack), Seq: w.seq, Node: node,
		Seen:    "a write was sent " + short(w.from.Sub(probedNext)) + " after the reporter had begun to probe anew: it was kept",
		Allowed: "what could not be written is dropped when the next results are there"})
}

// probedAt is when the probes of a write had surely begun; zero if its entries do not tell.
func (pl *pluginFacts) probedAt(node string, w write) (first time.Time) {
	for _, e := range w.entries {
		at, known := pl.facts.clocks.instant(node, e)
		if !known {
			return time.Time{}
		}
		if at = pl.begunBy(plugin{node, e.keyID}, at, at.Add(e.precision)); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// begunBy is when a probe that was checked within a span had surely begun: with whole seconds the plugin's journal tells more than lastChecked.
func (pl *pluginFacts) begunBy(p plugin, from, to time.Time) time.Time {
	t := pl.all[p]
	if t == nil {
		return to
	}
	last := sort.Search(len(t.probes), func(i int) bool { return !t.probes[i].Began.Before(to) }) - 1
	if last >= 0 && !t.probes[last].Began.Before(from) {
		return t.probes[last].Began
	}
	return to
}

// aggregatorRedials is the time after which the aggregator, which writes the reports of streams, gives up a connection without answers. Until then it
// writes to it, and what it writes last is not cancelled.
const aggregatorRedials = 3 * time.Second

// wasUnderWay reports whether a late write can be the request that was under way when its way was held up: what an API server or etcd had begun takes effect
// when it goes on, although its sender has given it up. Each hold delivers one. What is sent later is cancelled in the same bytes that bring it, and an API
// server may be done before it looks at that: with the first into a mute link, for the sender gives up the connection with it, and with one that comes with
// others that were given up.
func wasUnderWay(v *Facts, node string, w write, probed time.Time, held spans, delivered map[time.Time]int64) bool {
	for _, h := range held {
		sent := h.from.Add(v.tolerance())
		if slices.ContainsFunc(v.network.links, func(l linkChange) bool { return l.state == history.LinkMute && l.at.Equal(h.from) }) {
			sent = sent.Add(v.interval() + v.run.Timing.Jitter)
		}
		if v.run.Connectivity == history.ConnectStream {
			sent = sent.Add(aggregatorRedials)
		}
		if h.clip(span{probed, w.from}).empty() || probed.After(sent) && !v.requests.amongGivenUp(node, w) {
			continue
		}
		if one, known := delivered[h.from]; known && one != w.seq {
			continue
		}
		delivered[h.from] = w.seq
		return true
	}
	return false
}

// amongGivenUp reports whether a write of node came at the same moment as another of its writes, with the results of other probes, that the API server saw
// was given up: both waited on the way. A write that the reporter kept and sent again has no such neighbour, or one with
// the same results.
func (rq *requestFacts) amongGivenUp(node string, w write) bool {
	for _, i := range rq.requestsOf[node] {
		r := rq.all[i]
		apart := r.received.Sub(w.from).Abs()
		if r.write && r.onCR && r.undecided() && apart <= rq.facts.tolerance() && len(r.body.reportOf(node)) > 0 && !slices.Equal(r.body.reportOf(node), w.entries) {
			return true
		}
	}
	return false
}

// heldBack returns the spans in which something between the reporter and etcd delayed bytes: a paused API server or etcd, a cut, mute or slow link.
// What was sent in time arrives later. A killed process or a reset link delivers nothing.
func heldBack(v *Facts, node string) spans {
	wide := span{v.complete.from.Add(-time.Hour), v.complete.to} // probes may be from before the recording
	flowing := spans{wide}
	onWay := append(v.processes.ofRole(history.RoleAPIServer), v.processes.ofRole(history.RoleEtcd)...)
	streams := v.run.Connectivity == history.ConnectStream
	if streams {
		onWay = append(onWay, v.processes.ofRole(history.RoleAggregator)...)
	}
	for _, p := range onWay {
		if p.node == node || p.node == "" || history.AnyAPIServer(v.run.Connectivity) {
			flowing = flowing.and(v.processes.in(p, procPaused).not(wide))
		}
	}
	holds := func(l linkChange) bool {
		return l.state != history.LinkReset && l.state != history.LinkStale && l.state != history.LinkSlowHandshake && (streams || l.from != history.RoleAggregator)
	}
	return flowing.and(v.network.fine(holds).not(v.complete).not(wide)).not(wide)
}

// trickled is when a throttled or lossy link delivered any number of writes after their senders had given them up: each that has been sent
// takes its time, whoever waits.
func trickled(v *Facts) spans {
	return v.network.fine(func(l linkChange) bool {
		return l.ok || l.state == history.LinkThrottled || l.state == history.LinkLossy
	}).not(v.complete)
}

// slowest is how much a slow link of the reporter's way added to the time of a request, at most.
func slowest(v *Facts, node string, during span) (delay time.Duration) {
	for i, l := range v.network.links {
		if l.state != history.LinkSlow || l.from == history.RoleAggregator && v.run.Connectivity != history.ConnectStream || l.node != node && l.node != "" {
			continue
		}
		until := v.complete.to
		for _, next := range v.network.links[i+1:] {
			if next.from == l.from && next.to == l.to && next.node == l.node {
				until = next.at
				break
			}
		}
		if !during.clip(span{l.at, until.Add(l.delay)}).empty() {
			delay += l.delay
		}
	}
	return delay
}
