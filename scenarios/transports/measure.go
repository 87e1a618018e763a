package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// window names the actions of a fault by their places in the scenario: its first, its last, and the last of those that end it. Zero: there is none.
type window struct{ first, last, undo string }

// load is what reporters and aggregators ask of API servers without a fault, for each node and hour.
type load struct {
	reports, rest, leases, reads float64 // rest: rollups and EncryptionHealth
	bytes                        float64 // bodies of all writes but leases, which no audit log keeps
	refused                      int     // writes, in all
	managers                     int     // field managers of the operator's CR at the end
}

// behaviour is what a fault did.
type behaviour struct {
	statuses  []string      // of KMSPluginsDegraded, in the order in which they first came
	unknown   time.Duration // how long it was Unknown
	accused   bool          // it was True, or Available False
	detection time.Duration // from the fault until it was True; 0 if it never was
	gap       time.Duration // longest time for which a node had no report accepted
	recovery  time.Duration // from the end of the fault until the rollup was False and every node had reported
	recovered bool
	affected  bool
	interval  time.Duration
}

// change is a status of a rollup from an instant on.
type change struct {
	at     time.Time
	status string
}

// facts are what measurements need of a history.
type facts struct {
	run                 history.Run
	steps, after, end   time.Time
	nodes               []string
	degraded, available []change
	reports             map[string][]time.Time // of a node, accepted
	began, done         map[string]time.Time   // actions
	requests            []*history.Request
	managers            int
}

func read(events []history.Event) facts {
	f := facts{reports: map[string][]time.Time{}, began: map[string]time.Time{}, done: map[string]time.Time{}}
	for _, e := range events {
		switch {
		case e.Run != nil:
			f.run = *e.Run
		case e.Phase != nil:
			f.phase(e.At, e.Phase.Name)
		case e.Expected != nil:
			f.nodes = nil
			for _, n := range e.Expected.Nodes {
				f.nodes = append(f.nodes, n.Name)
			}
		case e.Action != nil && e.Action.State == history.ActionBegan:
			f.began[e.Action.ID] = e.At
		case e.Action != nil:
			f.done[e.Action.ID] = e.At
		case e.Object != nil && strings.HasPrefix(e.Object.Resource, f.run.Operator):
			f.object(e.At, e.Object)
		case e.Request != nil:
			f.request(e.Request)
		}
	}
	for _, times := range f.reports { // audit logs are read a little late, and one after another
		slices.SortFunc(times, time.Time.Compare)
	}
	return f
}

func (f *facts) phase(at time.Time, name history.PhaseName) {
	switch name {
	case history.PhaseSteps:
		f.steps = at
	case history.PhaseAfter:
		f.after = at
	case history.PhaseEnd:
		f.end = at
	}
}

func (f *facts) object(at time.Time, o *history.Object) {
	all := map[string]bool{}
	for _, managers := range o.Owners {
		for _, m := range managers {
			all[m] = true
		}
	}
	f.managers = len(all)
	for _, c := range o.Conditions {
		switch c.Type {
		case contract.ConditionDegraded:
			f.degraded = append(f.degraded, change{at, c.Status})
		case contract.ConditionAvailable:
			f.available = append(f.available, change{at, c.Status})
		}
	}
}

func (f *facts) request(r *history.Request) {
	f.requests = append(f.requests, r)
	if node := r.Reporter(); node != "" && isWrite(r) && r.Code == http.StatusOK {
		f.reports[node] = append(f.reports[node], r.Completed)
	}
}

func isWrite(r *history.Request) bool {
	return slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, r.Verb)
}

// steady is the load between the beginning of the steps and their end.
func (f facts) steady() load {
	l := load{managers: f.managers}
	hours := f.after.Sub(f.steps).Hours() * float64(len(f.nodes))
	if hours <= 0 {
		return l
	}
	for _, r := range f.requests {
		report := r.Reporter() != ""
		if r.Completed.Before(f.steps) || !r.Completed.Before(f.after) || !report && r.User != contract.AggregatorIdentity {
			continue
		}
		l.count(r, report)
	}
	for _, n := range []*float64{&l.reports, &l.rest, &l.leases, &l.reads, &l.bytes} {
		*n /= hours
	}
	return l
}

func (l *load) count(r *history.Request, report bool) {
	switch {
	case !isWrite(r):
		l.reads++
		return
	case strings.HasPrefix(r.Resource, "leases"):
		l.leases++
		return
	case report:
		l.reports++
	default:
		l.rest++
	}
	l.bytes += float64(len(r.Body))
	if r.Code >= http.StatusBadRequest {
		l.refused++
	}
}

// behaviour is what happened from the first action of a fault to the end.
func (f facts) behaviour(w window) behaviour {
	from, undone := f.began[w.first], f.done[w.undo]
	b := behaviour{interval: f.run.Timing.Interval}
	if from.IsZero() || undone.IsZero() {
		return b
	}
	well := undone // the last instant at which something was not well yet
	each(f.degraded, from, f.end, func(status string, began, ended time.Time) {
		if !slices.Contains(b.statuses, status) {
			b.statuses = append(b.statuses, status)
		}
		if status == "Unknown" {
			b.unknown += ended.Sub(began)
		}
		if status != "False" && ended.After(well) {
			well = ended
		}
		if status == "True" {
			b.accused = true
			if b.detection == 0 {
				b.detection = began.Sub(f.done[w.last])
			}
		}
	})
	each(f.available, from, f.end, func(status string, _, _ time.Time) { b.accused = b.accused || status == "False" })
	b.recovered = well.Before(f.end)
	for _, n := range f.nodes {
		gap, first := gaps(f.reports[n], from, undone, f.end)
		b.gap = max(b.gap, gap)
		if first.IsZero() {
			b.recovered = false
		}
		if gap > 2*f.run.Timing.Interval && first.After(well) {
			well = first
		}
	}
	b.affected = b.gap > 2*f.run.Timing.Interval || len(b.statuses) > 1
	b.recovery = well.Sub(undone)
	return b
}

// each calls f with every status that was in force between two instants, and with the time for which it was.
func each(changes []change, from, to time.Time, f func(status string, began, ended time.Time)) {
	for i, c := range changes {
		ended := to
		if i+1 < len(changes) {
			ended = changes[i+1].at
		}
		if c.at.Before(to) && ended.After(from) {
			began := c.at
			if began.Before(from) {
				began = from
			}
			if ended.After(to) {
				ended = to
			}
			f(c.status, began, ended)
		}
	}
}

// gaps are the longest time without a report that ends after from, and the first report after undone.
func gaps(reports []time.Time, from, undone, end time.Time) (longest time.Duration, first time.Time) {
	before := from
	for _, at := range reports {
		switch {
		case at.After(end):
			continue
		case at.After(from):
			longest = max(longest, at.Sub(before))
		}
		if first.IsZero() && at.After(undone) {
			first = at
		}
		before = at
	}
	return max(longest, end.Sub(before)), first
}

// denied counts the attempts of a scenario that an API server denied, and all of them.
func denied(events []history.Event) (refused, all int) {
	for _, e := range events {
		if e.Action != nil && e.Action.Verb == "attempt" && e.Action.State != history.ActionBegan {
			all++
			if e.Action.State == history.ActionDone {
				refused++
			}
		}
	}
	return refused, all
}

// violations are what the checker found.
func violations(v check.Verdict) (out []string) {
	for _, r := range v.Invariants {
		if r.Status == check.Failed {
			out = append(out, r.ID)
		}
	}
	return append(out, v.Problems...)
}
