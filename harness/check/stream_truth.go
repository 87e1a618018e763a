package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func streamTruth() Invariant {
	return Invariant{
		ID:        "STREAM-TRUTH",
		Statement: "where reporters stream, the EncryptionHealth has every node that should report and no other, each in one list; a node is Unknown from the connect of its reporter to its first report and while the aggregator cannot hear it, else what its last report says",
		Source:    "Streaming",
		Timed:     AllTimed,
		Judge:     judgeStreamTruth,
	}
}

// silence is how long an aggregator may take to notice a reporter that is gone without a word (contract, "Streaming").
const silence = 4 * time.Second

// health is a state of the EncryptionHealth, while it stood.
type health struct {
	span
	seq        int64
	generation int64
	status     *contract.HealthStatus
}

func (ob *objectFacts) healths() (out []health) {
	for n := range ob.facts.events {
		e := &ob.facts.events[n]
		if e.Kind != history.KindObject || e.Object.Health == nil || plural(e.Object.Resource) != contract.HealthResource || e.Object.Name+"s" != plural(ob.facts.run.Operator) {
			continue
		}
		if last := len(out) - 1; last >= 0 {
			out[last].to = e.At
		}
		out = append(out, health{span{e.At, ob.facts.complete.to}, e.Seq, e.Object.Generation, e.Object.Health})
	}
	return out
}

// of is the replica of a node; an empty one if it is not there.
func (h health) of(node string) contract.ReplicaHealth {
	for _, r := range h.status.Replicas {
		if r.NodeName == node {
			return r
		}
	}
	return contract.ReplicaHealth{}
}

func judgeStreamTruth(v *Facts) (f Finding) {
	if v.run.Connectivity != history.ConnectStream {
		return f
	}
	all := v.objects.healths()
	for _, h := range all {
		judgeLists(&f, h)
	}
	for _, node := range v.expectations.nodes() {
		judgeMembership(v, &f, all, node)
		judgeDeaf(v, &f, all, node)
		judgeHeard(v, &f, all, node)
		judgeConnects(v, &f, all, node)
	}
	return f
}

// judgeLists: each node is ready or not, as its replica and the generation say, and Ready sums that up.
func judgeLists(f *Finding, h health) {
	bad := func(node, seen, allowed string) {
		f.Violate(Violation{At: h.from, Seq: h.seq, Node: node, Seen: "the EncryptionHealth " + seen, Allowed: allowed})
	}
	f.JudgedAt(h.from, h.from)
	if n := len(h.status.Replicas); n != len(h.status.ReadyNodes)+len(h.status.NotReadyNodes) {
		bad("", "lists "+number(int64(len(h.status.ReadyNodes)+len(h.status.NotReadyNodes)))+" nodes for "+number(int64(n))+" replicas", "each node in exactly one list")
	}
	for _, r := range h.status.Replicas {
		ready, notReady := slices.Contains(h.status.ReadyNodes, r.NodeName), slices.Contains(h.status.NotReadyNodes, r.NodeName)
		is := r.Status == "True" && r.ObservedGeneration == h.status.ObservedGeneration
		if ready == notReady || ready != is {
			bad(r.NodeName, "lists "+r.NodeName+", which is "+r.Status+" at generation "+number(r.ObservedGeneration)+", as "+listed(ready, notReady),
				"ready if it is True and has observed generation "+number(h.status.ObservedGeneration)+", else not ready")
		}
	}
	for _, c := range h.status.Conditions {
		if want := len(h.status.NotReadyNodes) == 0; c.Type == contract.HealthReady && (c.Status == "True") != want {
			bad("", "is Ready "+c.Status+" with "+number(int64(len(h.status.NotReadyNodes)))+" nodes that are not", "True exactly if every node is ready")
		}
	}
}

func listed(ready, notReady bool) string {
	switch {
	case ready && notReady:
		return "both"
	case ready:
		return "ready"
	case notReady:
		return "not ready"
	}
	return "neither"
}

// judgeMembership: whoever should report is there, nobody else.
func judgeMembership(v *Facts, f *Finding, all []health, node string) {
	expected := v.expectations.ofNode(node)
	gone := expected.not(v.complete).and(v.expectations.known())
	for _, h := range all {
		there := h.of(node).NodeName != ""
		for _, wrong := range []struct {
			when         spans
			there        bool
			seen, wanted string
		}{
			{expected, false, "has no replica of " + node, "at least Unknown for each node that should report"},
			{gone, true, "still has a replica of " + node, "no replica of a node that should not report"},
		} {
			for _, s := range wrong.when.settled(v.latency()).and(v.able.aggregator).clip(h.span) {
				f.JudgedAt(s.from, s.to)
				if there == wrong.there {
					f.Violate(Violation{At: s.from, Seq: h.seq, Node: node, Seen: "the EncryptionHealth " + wrong.seen, Allowed: wrong.wanted})
				}
			}
		}
	}
}

// judgeDeaf: a reporter that is gone, or cannot be heard, is Unknown.
func judgeDeaf(v *Facts, f *Finding, all []health, node string) {
	reporter := process{role: history.RoleReporter, node: node}
	lives := v.processes.in(reporter, procStarting, procUp)
	if len(v.processes.procs[reporter]) == 0 {
		return
	}
	// A link that is only slow is heard.
	linked := v.network.fineBut(func(l linkChange) bool {
		return l.node == node && (l.from == history.RoleReporter || l.from == history.RoleNode)
	}, func(linkChange) bool { return true })
	doubled := v.processes.doubled[reporter]
	// The kernel of a node that runs ends the streams of a process that does not.
	killed := v.processes.in(reporter, procDown).and(doubled.not(v.complete)).and(linked).and(v.processes.upOrUnmentioned(process{role: history.RoleNode, node: node}))
	for _, deaf := range []struct {
		when  spans
		bound time.Duration
	}{
		{lives.and(linked).or(doubled).not(v.complete), silence + v.latency()},
		{killed, v.latency()},
	} {
		due := deaf.when.settled(deaf.bound).and(v.able.aggregator).and(v.expectations.ofNode(node))
		for _, h := range all {
			for _, s := range due.clip(h.span) {
				f.JudgedAt(s.from, s.to)
				if r := h.of(node); r.NodeName != "" && r.Status != "Unknown" {
					f.Violate(Violation{At: s.from, From: s.from.Add(-deaf.bound), To: s.from, Seq: h.seq, Node: node, Seen: "the EncryptionHealth says " + r.Status + " of " + node + ", whose reporter cannot be heard",
						Allowed: "Unknown within " + short(deaf.bound) + " after a reporter is gone"})
				}
			}
		}
	}
}

// judgeHeard: of a reporter that is heard the EncryptionHealth says what the report on the CR says.
func judgeHeard(v *Facts, f *Finding, all []health, node string) {
	bound := v.run.Timing.CadenceMax() + v.latency()
	heard := v.able.reporter(node).and(v.expectations.ofNode(node)).settled(bound).and(v.able.aggregator)
	said := map[string][]span{}
	changes := v.objects.reports[node]
	for i, c := range changes {
		if c.rep == nil || c.rep.foreign || c.rep.problem != "" {
			continue
		}
		stood := span{c.at, v.complete.to}
		if i+1 < len(changes) {
			stood.to = changes[i+1].at
		}
		want := "True"
		if slices.ContainsFunc(c.rep.entries, func(e entry) bool { return e.status != contract.StatusHealthy }) {
			want = "False"
		}
		said[want] = append(said[want], stood)
	}
	for _, want := range []string{"True", "False"} {
		// Each tick brings a report: those that say the same stand as one.
		for _, due := range merged(said[want]).settled(v.latency()).and(heard) {
			for _, h := range all {
				s := h.clip(due)
				if s.empty() {
					continue
				}
				f.JudgedAt(s.from, s.to)
				if r := h.of(node); r.Status != want {
					f.Violate(Violation{At: s.from, From: s.from.Add(-v.latency()), To: s.from, Seq: h.seq, Node: node, Seen: "the EncryptionHealth says " + orNothing(r.Status) + " of " + node + ", although its reporter is heard and its last report says otherwise",
						Allowed: want + " within " + short(v.latency()) + " after its report, and after a reconnect within " + short(bound)})
				}
			}
		}
	}
}

// judgeConnects: between the start of a reporter and its first report the EncryptionHealth says Unknown, and nothing else after that.
func judgeConnects(v *Facts, f *Finding, all []health, node string) {
	reporter := process{role: history.RoleReporter, node: node}
	writes := v.requests.writesOf(node)
	for _, c := range v.processes.procs[reporter] {
		i := slices.IndexFunc(writes, func(w write) bool { return w.from.After(c.at) })
		if c.event != history.ProcessStarted || i < 0 || v.processes.doubled[reporter].touches(span{c.at.Add(-silence), writes[i].to}) {
			continue
		}
		first := writes[i]
		connecting := span{c.at.Add(-v.tolerance()), first.to.Add(1)}
		if !v.able.aggregator.covers(connecting) || !v.expectations.ofNode(node).covers(connecting) {
			continue
		}
		f.JudgedAt(connecting.from, connecting.to)
		unknown := func(h health) bool { s := h.clip(connecting); return !s.empty() && h.of(node).Status == "Unknown" }
		if !slices.ContainsFunc(all, unknown) {
			f.Violate(Violation{At: first.to, From: c.at, To: first.to, Seq: first.seq, Node: node, Seen: "the reporter of " + node + " was started and reported, and the EncryptionHealth never said Unknown",
				Allowed: "Unknown from the connect to the first report"})
		}
		for i := 1; i < len(all); i++ {
			h := all[i]
			if r := h.of(node); !h.from.Before(c.at) && h.from.Before(first.from) && r.NodeName != "" && r.Status != "Unknown" && all[i-1].of(node).Status == "Unknown" {
				f.Violate(Violation{At: h.from, From: c.at.Add(-v.tolerance()), To: h.from, Seq: h.seq, Node: node, Seen: "the EncryptionHealth says " + r.Status + " of " + node + ", whose reporter was started and has not reported yet",
					Allowed: "Unknown from the connect to the first report"})
			}
		}
	}
}
