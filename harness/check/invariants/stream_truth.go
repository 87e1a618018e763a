package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// silence is how long an aggregator may take to notice a reporter that is gone without closing its stream: a ping after
// 1 s without data, and 3 s for the answer (contract, "Streaming").
const silence = 4 * time.Second

func judgeStreamTruth(v *facts.Facts) (f Finding) {
	if v.Run.Connectivity != history.ConnectStream {
		return f
	}
	all := healths(v)
	for _, h := range all {
		judgeLists(&f, h)
	}
	for _, node := range v.Expectations.Nodes() {
		judgeMembership(v, &f, all, node)
		judgeDeaf(v, &f, all, node)
		judgeHeard(v, &f, all, node)
		judgeConnects(v, &f, all, node)
	}
	return f
}

// health is a state of the EncryptionHealth.
type health = facts.State[contract.HealthStatus]

// healths are those of the run's operator.
func healths(v *facts.Facts) (out []health) {
	for e := range v.Each(history.KindObject) {
		o := e.Object
		if o.Health != nil && history.Plural(o.Resource) == contract.HealthResource && o.Name+"s" == history.Plural(v.Run.Operator) {
			out = span.Append(out, health{Span: span.New(e.At, v.Period.To), Seq: e.Seq, Value: o.Health})
		}
	}
	return out
}

// replica is that of a node; an empty one if it is not there.
func replica(h health, node string) (r contract.ReplicaHealth) {
	if i := slices.IndexFunc(h.Value.Replicas, func(r contract.ReplicaHealth) bool { return r.NodeName == node }); i >= 0 {
		r = h.Value.Replicas[i]
	}
	return r
}

// judgeLists judges each state by itself: each node is in one of the two lists, as its replica and the generation say,
// and Ready sums that up.
func judgeLists(f *Finding, h health) {
	bad := func(node, seen, allowed string) {
		f.Violate(Violation{At: h.From, Seq: h.Seq, Node: node, Seen: "the EncryptionHealth " + seen, Allowed: allowed})
	}
	f.JudgedAt(h.From, h.From)
	s := h.Value
	if n, listed := len(s.Replicas), len(s.ReadyNodes)+len(s.NotReadyNodes); n != listed {
		bad("", fmt.Sprintf("lists %d nodes for %d replicas", listed, n), "each node in exactly one list")
	}
	for _, r := range s.Replicas {
		ready, notReady := slices.Contains(s.ReadyNodes, r.NodeName), slices.Contains(s.NotReadyNodes, r.NodeName)
		is := r.Status == "True" && r.ObservedGeneration == s.ObservedGeneration
		if ready == notReady || ready != is {
			lists := map[[2]bool]string{{true, true}: "both", {true, false}: "ready", {false, true}: "not ready", {false, false}: "neither"}
			bad(r.NodeName, fmt.Sprintf("lists %s, which is %s at generation %d, as %s", r.NodeName, r.Status, r.ObservedGeneration, lists[[2]bool{ready, notReady}]),
				fmt.Sprintf("ready if it is True and has observed generation %d, else not ready", s.ObservedGeneration))
		}
	}
	for _, c := range s.Conditions {
		if want := len(s.NotReadyNodes) == 0; c.Type == contract.HealthReady && (c.Status == "True") != want {
			bad("", fmt.Sprintf("is Ready %s with %d nodes that are not", c.Status, len(s.NotReadyNodes)), "True exactly if every node is ready")
		}
	}
}

// judgeMembership: each node that should report has a replica, and no other node has one.
func judgeMembership(v *facts.Facts, f *Finding, all []health, node string) {
	judge := func(h health, when span.Set, wrong bool, seen, wanted string) {
		for _, s := range when.Settled(v.Latency()).Intersect(v.Aggregator.Able).Clip(h.Span) {
			f.judgedIn(s)
			if wrong {
				f.Violate(Violation{At: s.From, Seq: h.Seq, Node: node, Seen: "the EncryptionHealth " + seen, Allowed: wanted})
			}
		}
	}
	for _, h := range all {
		there := replica(h, node).NodeName != ""
		judge(h, v.Expectations.Node(node), !there, "has no replica of "+node, "at least Unknown for each node that should report")
		judge(h, v.Expectations.NotNode(node), there, "still has a replica of "+node, "no replica of a node that should not report")
	}
}

// judgeDeaf judges that a reporter that is gone, or cannot be heard, is Unknown. If the process ended on a node that
// runs and is connected, the kernel closes the stream, and the bound is the latency alone. Otherwise the ping has to
// fail first: silence more.
func judgeDeaf(v *facts.Facts, f *Finding, all []health, node string) {
	reporter := facts.Reporter(node)
	if len(v.Processes.States[reporter]) == 0 {
		return
	}
	// A link that is only slow is heard.
	linked := v.Network.FineBut(func(l facts.Link) bool {
		return l.Node == node && (l.From == history.RoleReporter || l.From == history.RoleNode)
	}, func(facts.Link) bool { return true })
	doubled := v.Processes.Successions[reporter]
	// The kernel of a node that runs ends the streams of a process that does not.
	killed := v.Processes.While(reporter, facts.Down).Intersect(doubled.Complement(v.Period)).Intersect(linked).Intersect(v.Processes.UpOrUnmentioned(facts.Process{Role: history.RoleNode, Node: node}))
	for _, deaf := range []struct {
		when  span.Set
		bound time.Duration
	}{
		{v.Processes.While(reporter, facts.Starting, facts.Up).Intersect(linked).Union(doubled).Complement(v.Period), silence + v.Latency()},
		{killed, v.Latency()},
	} {
		due := deaf.when.Settled(deaf.bound).Intersect(v.Aggregator.Able).Intersect(v.Expectations.Node(node))
		for h, s := range span.Within(all, due) {
			f.judgedIn(s)
			if r := replica(h, node); r.NodeName != "" && r.Status != "Unknown" {
				f.Violate(Violation{At: s.From, From: s.From.Add(-deaf.bound), To: s.From, Seq: h.Seq, Node: node, Seen: "the EncryptionHealth says " + r.Status + " of " + node + ", whose reporter cannot be heard",
					Allowed: "Unknown within " + text.Short(deaf.bound) + " after a reporter is gone"})
			}
		}
	}
}

// judgeHeard judges that of a reporter that is heard the EncryptionHealth says what the report on the CR says. After a
// reconnect, the reporter has until its next tick, so the bound is that of the cadence.
func judgeHeard(v *facts.Facts, f *Finding, all []health, node string) {
	bound := v.CadenceMax() + v.Latency()
	heard := v.Reporters.Able(node).Intersect(v.Expectations.Node(node)).Settled(bound).Intersect(v.Aggregator.Able)
	for _, want := range []string{"True", "False"} {
		// Each tick brings a report: those that say the same stand as one.
		said := span.Where(v.Reports.Own(node), func(s facts.State[facts.Report]) bool {
			ill := slices.ContainsFunc(s.Value.Entries, func(e facts.Entry) bool { return e.Status != contract.StatusHealthy })
			return s.Value.Problem == "" && ill == (want == "False")
		})
		for _, due := range said.Settled(v.Latency()).Intersect(heard) {
			for h, s := range span.Within(all, span.Set{due}) {
				f.judgedIn(s)
				if r := replica(h, node); r.Status != want {
					f.Violate(Violation{At: s.From, From: s.From.Add(-v.Latency()), To: s.From, Seq: h.Seq, Node: node, Seen: "the EncryptionHealth says " + cmp.Or(r.Status, "nothing") + " of " + node + ", although its reporter is heard and its last report says otherwise",
						Allowed: want + " within " + text.Short(v.Latency()) + " after its report, and after a reconnect within " + text.Short(bound)})
				}
			}
		}
	}
}

// judgeConnects judges that between the start of a reporter and its first report the EncryptionHealth says Unknown, and
// nothing else. A reporter probes nothing before its node is Unknown.
func judgeConnects(v *facts.Facts, f *Finding, all []health, node string) {
	writes := v.Reporters.Writes(node)
	for _, start := range v.Processes.States[facts.Reporter(node)] {
		i := slices.IndexFunc(writes, func(w facts.Write) bool { return w.From.After(start.From) })
		if start.Event != history.ProcessStarted || i < 0 || v.Processes.Successions[facts.Reporter(node)].Overlaps(span.New(start.From.Add(-silence), writes[i].To)) {
			continue
		}
		first := writes[i]
		connecting := span.New(start.From.Add(-v.Tolerance), first.To.Add(1))
		if !v.Aggregator.Able.Covers(connecting) || !v.Expectations.Node(node).Covers(connecting) {
			continue
		}
		f.judgedIn(connecting)
		unknown := func(h health) bool {
			return !h.Clip(connecting).Empty() && replica(h, node).Status == "Unknown"
		}
		if !slices.ContainsFunc(all, unknown) {
			f.Violate(Violation{At: first.To, From: start.From, To: first.To, Seq: first.Seq, Node: node, Seen: "the reporter of " + node + " was started and reported, and the EncryptionHealth never said Unknown",
				Allowed: "Unknown from the connect to the first report"})
		}
		for i := 1; i < len(all); i++ {
			h := all[i]
			if r := replica(h, node); !h.From.Before(start.From) && h.From.Before(first.From) && r.NodeName != "" && r.Status != "Unknown" && replica(all[i-1], node).Status == "Unknown" {
				f.Violate(Violation{At: h.From, From: connecting.From, To: h.From, Seq: h.Seq, Node: node, Seen: "the EncryptionHealth says " + r.Status + " of " + node + ", whose reporter was started and has not reported yet",
					Allowed: "Unknown from the connect to the first report"})
			}
		}
	}
}
