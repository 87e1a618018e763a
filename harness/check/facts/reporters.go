package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Reporters tells when the reporter of each node could write, and what it wrote.
type Reporters struct {
	servers      *APIServers
	run          *history.Run
	period       span.Span
	refusals     *Refusals
	clocks       *Clocks
	requests     *Requests
	cr           *CR
	reports      Reports
	expectations Expectations
	aggregator   *Aggregator

	writes map[string][]Write  // memo, by node
	able   map[string]span.Set // memo, by node
}

// Write is one successful write of a report, from when the API server received it until it was done.
type Write struct {
	span.Span
	Seq     int64
	Entries []Entry
}

func WriteOf(r *Request) Write { return Write{span.New(r.Received, r.At), r.Seq, r.Entries} }

// Writes returns the successful writes of node's reporter, from the audit log. Where there is none, it takes what
// changed on the CR, where a write that changed nothing is not seen. What an observer finds at its beginning was written
// at some time before.
func (rs *Reporters) Writes(node string) []Write {
	if known, done := rs.writes[node]; done {
		return known
	}
	var out []Write
	for _, r := range rs.requests.Tried[node] {
		if r.Succeeded() {
			out = append(out, WriteOf(r))
		}
	}
	if len(out) == 0 {
		for _, s := range rs.reports.Own(node) {
			if rs.run.Observed && s.From.Equal(rs.cr.Since) {
				continue
			}
			out = append(out, Write{span.New(s.From, s.From), s.Seq, s.Value.Entries})
		}
	}
	rs.writes[node] = out
	return out
}

// Able returns the spans in which the reporter of node could write what is believed: it could write, and its clock was
// right. Most bounds count only in these spans, so a bug here hides violations: what may keep a reporter from writing is
// in one place, Writing.
func (rs *Reporters) Able(node string) span.Set {
	able, known := rs.able[node]
	if !known {
		able = rs.Writing(node).Intersect(rs.clocks.Settled(node))
		rs.able[node] = able
	}
	return able
}

// Writing returns the spans in which the reporter of node could write: it ran, and so did everything between it and
// etcd, its requests were not refused, and the list of reports existed and had a place for it. A wrong clock does not
// keep it from writing, except one that was set back.
func (rs *Reporters) Writing(node string) span.Set {
	if WithoutField(rs.run) {
		return nil
	}
	server := node
	if history.AnyAPIServer(rs.run.Connectivity) {
		server = ""
	}
	kept := rs.refusals.of(history.RoleReporter, node, server).Union(rs.crowded(node)).Union(rs.clockSetBack(node))
	return rs.Reaching(node).Intersect(kept.Complement(rs.period))
}

// WithoutField reports whether the CRDs of the run have no field for the reports that it is about. No reporter can write one then.
func WithoutField(run *history.Run) bool {
	return (run.CRDs == history.CRDsDefault || run.CRDs == history.CRDsGateOff) && run.Contract == history.FormHealthReports
}

// Reaching returns the spans in which the reporter of node ran, and reached an API server that could serve it. How many
// API servers must be well for that depends on the connectivity: its own for loopback, each behind the load balancer for
// service, any that it knows for altsvc.
func (rs *Reporters) Reaching(node string) span.Set {
	ran := rs.servers.processes.While(Reporter(node), Up)
	linked := ran.Intersect(rs.servers.network.FineBut(func(l Link) bool { return l.From == history.RoleReporter && l.on(node) }, rs.servers.network.inTime))
	switch rs.run.Connectivity {
	case history.ConnectService:
		return linked.Intersect(rs.servers.ServiceFine())
	case history.ConnectStream:
		return linked.Intersect(rs.streamFine(node))
	case history.ConnectStatic:
		return ran.Intersect(rs.servers.failedOver())
	case history.ConnectAltSvc:
		return ran.Intersect(rs.discovered(node, linked)).Intersect(rs.servers.failedOver())
	default:
		return linked.Intersect(rs.servers.Fine(node))
	}
}

// streamFine is when an aggregator served the stream of node: it was in charge, the node was on the network, and the node was known to it. A node that
// nobody expects is refused.
func (rs *Reporters) streamFine(node string) span.Set {
	onNetwork := rs.servers.network.Fine(func(l Link) bool { return l.From == history.RoleNode && l.Node == node })
	return rs.aggregator.InCharge.Intersect(onNetwork).Intersect(rs.expectations.listed(node))
}

// discovered returns the spans in which the reporter of node knew the alternative API servers: in each run, from its first write on, or from the
// instant at which it could have made one. linked has the spans in which it reached the load balancer. Until it ends it forgets no alternative
// (docs/contract.md, connectivity altsvc).
func (rs *Reporters) discovered(node string, linked span.Set) span.Set {
	could := linked.Intersect(rs.servers.ServiceFine()).Settled(rs.servers.bounds.attempt())
	var out []span.Span
	for _, run := range rs.servers.processes.While(Reporter(node), Up, Paused) {
		from := run.To
		if first := could.Clip(run); len(first) > 0 {
			from = first.Begin()
		}
		if i := slices.IndexFunc(rs.Writes(node), func(w Write) bool { return run.Contains(w.To) }); i >= 0 {
			from = span.Earliest(from, rs.Writes(node)[i].To)
		}
		out = append(out, span.New(from, run.To))
	}
	return span.Merge(out)
}

// crowded is when the typed list had no place for the items of a node: from a write that was refused for it until the CR shows a list in which they
// would fit.
func (rs *Reporters) crowded(node string) span.Set {
	var out []span.Span
	for _, r := range rs.requests.Of[node] {
		if !r.Write || r.Succeeded() || !r.CrowdedOut() || len(out) > 0 && r.Received.Before(out[len(out)-1].To) {
			continue
		}
		fits := func(s Snapshot) bool {
			others := slices.DeleteFunc(slices.Clone(s.Object.HealthReports), func(t *contract.TypedReport) bool { return t.NodeName == node })
			return s.From.After(r.At) && len(others)+len(r.Body.Typed) <= contract.MaxTypedReports
		}
		out = append(out, span.New(r.Received, until(rs.cr.Snapshots, fits, rs.period.To)))
	}
	return span.Merge(out)
}

// clockSetBack returns the spans in which the clock of a node had been set back, so that what its reporter writes would
// look older than what it wrote before: until the clock is there again. While it looks older by more than an interval,
// readers call the earlier report skewed, and a reporter may replace it.
func (rs *Reporters) clockSetBack(node string) span.Set {
	var off []span.Span
	periods, writes := rs.clocks.of(node), rs.Writes(node)
	for i, p := range periods[1:] {
		last, wrote := span.Last(writes, p.From.Add(-1))
		if !wrote {
			continue
		}
		newest := newestOf(last.Entries) // by its clock
		upTo := newest
		for _, before := range periods[:i+1] { // a write that failed may have said as much
			if before.To.After(last.From) {
				upTo = span.Latest(upTo, before.To.Add(before.ahead))
			}
		}
		off = append(off, span.New(newest.Add(-rs.servers.bounds.Interval-p.ahead), upTo.Add(-p.ahead)).Clip(p.Span))
	}
	return span.Merge(off)
}

// Runs cuts the judged time where the reporter of a node was started or resumed: its ticks begin anew there, and the
// distance of two writes across such a point says nothing of its interval. While two reporters of the node ran, both
// write at their own rate: that is left out.
func (rs *Reporters) Runs(node string) []span.Span {
	var runs []span.Span
	end := rs.period.To.Add(time.Second)
	cut := func(from time.Time) { runs = span.Append(runs, span.New(from, end)) }
	cut(rs.period.From)
	for _, s := range rs.servers.processes.States[Reporter(node)] {
		if s.Event == history.ProcessStarted || s.Event == history.ProcessResumed {
			cut(s.From)
		}
	}
	for i := range runs {
		for _, two := range rs.servers.processes.Successions[Reporter(node)] {
			if two.From.Equal(runs[i].From) {
				runs[i].From = two.To
			}
		}
		runs[i].To = span.Latest(runs[i].From, runs[i].To)
	}
	return runs
}

// Handovers returns the spans in which two reporters of a node wrote, each what it had probed before its write: the
// later of two probes may be written first. The last write of the one that ended was under way for a write's deadline at
// most.
func (rs *Reporters) Handovers(node string) (out span.Set) {
	for _, s := range rs.servers.processes.Successions[Reporter(node)] {
		out = append(out, s.Grow(0, rs.servers.bounds.WriteTimeout+rs.servers.bounds.Tolerance))
	}
	return out
}
