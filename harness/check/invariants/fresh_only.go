package invariants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// lateWrites tells which writes of a node's reporter something between it and etcd may have delivered late.
type lateWrites struct {
	*facts.Facts
	node            string
	held, trickling span.Set
	delivered       map[time.Time]int64 // by the beginning of what held it back: the late write
}

// The age of a probe counts at the API server's receipt, which is where a queue in the reporter ends. The bound is I + R
// + W: a result is written in its own interval, or is dropped for the next one.
func judgeFreshOnly(v *facts.Facts) (f Finding) {
	bound := v.MaxProbeAge() + v.Tolerance
	for _, node := range v.Reports.Nodes() {
		late := lateWrites{v, node, heldBack(v, node), trickled(v), map[time.Time]int64{}}
		writes := v.Reporters.Writes(node)
		for i, w := range writes {
			if i+1 < len(writes) {
				late.judgeKept(&f, w, writes[i+1])
			}
			for _, e := range v.Clocks.Dated(node, w.Entries) {
				f.JudgedAt(w.From, w.From)
				limit := bound + v.BackedOff(e.Status) + late.slowest(span.New(e.Checked, w.From))
				age := w.From.Sub(e.Checked.Add(e.Precision))
				if age > limit && !late.explains(w, e.Checked) {
					f.Violate(Violation{At: w.From, From: e.Checked, To: e.Checked.Add(limit), Seq: w.Seq, Node: node, KeyID: e.KeyID, Seen: "a write carries the probe of " + e.CheckedText + ", " + text.Short(age) + " old",
						Allowed: "at most " + text.Short(limit) + " old (I + R + W and tolerance)"})
				}
			}
		}
	}
	return f
}

// judgeKept judges that a write was not sent after the reporter had begun to probe anew. A reporter probes again when
// its write has ended or was given up. So a write that was received after the probes of the next one had begun was kept
// meanwhile, or was under way: explains tells these apart.
func (l *lateWrites) judgeKept(f *Finding, w, next facts.Write) {
	probed, probedNext := l.Plugins.ProbedAt(l.node, l.ofTheTick(w.Entries)), l.Plugins.ProbedAt(l.node, l.ofTheTick(next.Entries))
	if probed.IsZero() || !probedNext.After(probed) { // MONOTONIC judges what goes back
		return
	}
	due := probedNext.Add(l.Tolerance + l.slowest(span.New(probed, w.From)))
	f.JudgedAt(w.From, w.From)
	if w.From.After(due) && !l.explains(w, probed) {
		f.Violate(Violation{At: w.From, From: probedNext, To: due, Seq: w.Seq, Node: l.node,
			Seen:    "a write was sent " + text.Short(w.From.Sub(probedNext)) + " after the reporter had begun to probe anew: it was kept",
			Allowed: "what could not be written is dropped when the next results are there"})
	}
}

// ofTheTick are the entries whose probes began with the tick of their write.
func (l *lateWrites) ofTheTick(entries []facts.Entry) []facts.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e facts.Entry) bool { return l.BackedOff(e.Status) > 0 })
}

// aggregatorRedials is the time after which the aggregator, which writes the reports of streams, gives up a connection
// without answers. Until then it writes to that connection, and its last write is not cancelled.
const aggregatorRedials = 3 * time.Second

// explains reports whether a late write trickled over an impaired link, or can be the request that was under way when its connection was held up: what an API
// server or etcd had begun takes effect when it goes on, although its sender has given it up. Each hold delivers one. What is sent later is cancelled in the same
// bytes that bring it, and an API server may be done before it reads that: with the first into a mute link, for the sender gives up the connection with it, and
// with one that comes with others that were given up.
func (l *lateWrites) explains(w facts.Write, probed time.Time) bool {
	meanwhile := span.New(probed, w.From)
	if l.trickling.Overlaps(meanwhile) {
		return true
	}
	for _, h := range l.held {
		sent := h.From.Add(l.Tolerance)
		if slices.ContainsFunc(l.Network.Links, func(x facts.Link) bool { return x.State == history.LinkMute && x.At.Equal(h.From) }) {
			sent = sent.Add(l.Interval + l.Jitter)
		}
		if l.Run.Connectivity == history.ConnectStream {
			sent = sent.Add(aggregatorRedials)
		}
		if h.Clip(meanwhile).Empty() || probed.After(sent) && !l.amongGivenUp(w) {
			continue
		}
		if one, known := l.delivered[h.From]; known && one != w.Seq {
			continue
		}
		l.delivered[h.From] = w.Seq
		return true
	}
	return false
}

// amongGivenUp reports whether a write came at the same moment as another one of its node, with the results of other probes, that the API server saw
// was given up: both waited on the way. A write that the reporter kept and sent again has no such neighbour, or one with
// the same results.
func (l *lateWrites) amongGivenUp(w facts.Write) bool {
	return slices.ContainsFunc(l.Requests.Tried[l.node], func(r *facts.Request) bool {
		return r.Undecided() && r.Received.Sub(w.From).Abs() <= l.Tolerance && len(r.Entries) > 0 && !slices.Equal(r.Entries, w.Entries)
	})
}

// heldBack returns the spans in which something between the reporter and etcd delayed bytes: a paused API server or etcd, a cut, mute or slow link.
// What was sent in time arrives later. A killed process or a reset link delivers nothing.
func heldBack(v *facts.Facts, node string) span.Set {
	wide := v.Period.Grow(time.Hour, 0) // probes may be from before the recording
	flowing := span.Set{wide}
	between := append(v.Processes.OfRole(history.RoleAPIServer), v.Processes.OfRole(history.RoleEtcd)...)
	streams := v.Run.Connectivity == history.ConnectStream
	if streams {
		between = append(between, v.Processes.OfRole(history.RoleAggregator)...)
	}
	for _, p := range between {
		if p.Node == node || p.Node == "" || history.AnyAPIServer(v.Run.Connectivity) {
			flowing = flowing.Intersect(v.Processes.While(p, facts.Paused).Complement(wide))
		}
	}
	delays := func(l facts.Link) bool {
		return l.State != history.LinkReset && l.State != history.LinkStale && l.State != history.LinkSlowHandshake && (streams || l.From != history.RoleAggregator)
	}
	return flowing.Intersect(v.Network.Fine(delays).Complement(v.Period).Complement(wide)).Complement(wide)
}

// trickled returns the spans in which a throttled or lossy link delivered any number of writes after their senders had
// given them up. Bytes in a queue of the link cannot be taken back.
func trickled(v *facts.Facts) span.Set {
	return v.Network.Fine(func(l facts.Link) bool {
		return l.OK() || l.State == history.LinkThrottled || l.State == history.LinkLossy
	}).Complement(v.Period)
}

// slowest is how much slow links between the reporter and etcd added to the time of a request, at most.
func (l *lateWrites) slowest(during span.Span) (delay time.Duration) {
	for _, x := range l.Network.Links {
		applies := x.Node == l.node || x.Node == ""
		if x.From == history.RoleAggregator {
			applies = applies && l.Run.Connectivity == history.ConnectStream
		}
		if x.State == history.LinkSlow && applies && !during.Clip(span.New(x.At, x.Until.Add(x.Delay))).Empty() {
			delay += x.Delay
		}
	}
	return delay
}
