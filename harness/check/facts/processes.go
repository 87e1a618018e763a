package facts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Process is the identity of a process across restarts.
type Process struct {
	Role, Node, KeyID string
	Instance          int
}

// String is how a person calls it: "reporter/cp-1", "aggregator 2".
func (p Process) String() string {
	name := p.Role
	if p.Node != "" {
		name += "/" + p.Node
	}
	if p.Instance != 0 {
		name += fmt.Sprintf(" %d", p.Instance)
	}
	return name
}

func ProcessOf(p *history.Process) Process { return Process{p.Role, p.Node, p.KeyID, p.Instance} }

// Reporter is the reporter of a node.
func Reporter(node string) Process { return Process{Role: history.RoleReporter, Node: node} }

func pluginProcess(p PluginID) Process {
	return Process{Role: history.RolePlugin, Node: p.Node, KeyID: p.KeyID}
}

// Activity is what a process was doing, as far as the harness knows: Paused also stands for a process that was silenced.
type Activity int

const (
	Down Activity = iota
	Starting
	Up
	Paused
)

// ProcessState is what a process was after an event.
type ProcessState struct {
	span.Span
	Seq      int64
	Event    string // the state in the history
	Activity Activity
}

// Disturbance is an instant at which the aggregator may have lost the lead or its connections. It is clean if connections break visibly.
type Disturbance struct {
	At    time.Time
	clean bool
}

func (v *Facts) readProcesses() {
	v.Processes, v.Successions = map[Process][]ProcessState{}, map[Process]span.Set{}
	var succession history.Succession
	for e := range v.Each(history.KindProcess) {
		p, k := e.Process, ProcessOf(e.Process)
		if v.forged[e.Seq] || v.succeeded(&succession, *p, e.At) {
			continue
		}
		v.Processes[k] = span.Append(v.Processes[k], ProcessState{Span: span.New(e.At, v.Period.To), Seq: e.Seq, Event: p.State})
		if DisturbsAggregator(p.Role) {
			v.Disturbances = append(v.Disturbances, Disturbance{e.At, p.State != history.ProcessPaused && p.State != history.ProcessSilenced && p.State != history.ProcessResumed})
		}
	}
	for _, states := range v.Processes {
		interpret(states)
	}
}

// succeeded reports whether a change is the end of a process whose successor was started before it, and notes how long they ran side by side.
func (v *Facts) succeeded(s *history.Succession, p history.Process, at time.Time) bool {
	replaced, k := s.Replaced(p), ProcessOf(&p)
	last := len(v.Successions[k]) - 1
	switch {
	case replaced && last >= 0:
		v.Successions[k][last].To = at
	case p.State == history.ProcessStarted && s.Overlaps(p):
		v.Successions[k] = append(v.Successions[k], span.New(at, v.Period.To))
	}
	return replaced
}

// DisturbsAggregator: a change of these processes may break the aggregator's connections or its leadership.
func DisturbsAggregator(role string) bool {
	return slices.Contains([]string{history.RoleAggregator, history.RoleAPIServer, history.RoleEtcd, history.RoleLoadBalancer}, role)
}

// interpret gives every state its activity. A process that is never reported ready is taken as up when it is started.
func interpret(states []ProcessState) {
	reportsReady := slices.ContainsFunc(states, func(s ProcessState) bool { return s.Event == history.ProcessReady })
	before := Up // a paused process was up
	for i := range states {
		s := &states[i]
		switch s.Event {
		case history.ProcessStarted:
			s.Activity = Up
			if reportsReady {
				s.Activity = Starting
			}
		case history.ProcessReady:
			s.Activity = Up
		case history.ProcessPaused, history.ProcessSilenced:
			s.Activity = Paused
			if i > 0 && states[i-1].Activity != Paused {
				before = states[i-1].Activity
			}
		case history.ProcessResumed:
			s.Activity = before
		default: // one that is about to end counts as gone: nothing can be expected of it any more
			s.Activity = Down
		}
	}
}

// initial is the activity before the first event, as far as that tells it.
func initial(first ProcessState) Activity {
	switch first.Event {
	case history.ProcessStarted, history.ProcessReady:
		return Down
	case history.ProcessResumed:
		return Paused
	}
	return Up
}

// While is when the activity of a process was one of some. A process of which nothing is known had none.
func (v *Facts) While(p Process, activities ...Activity) span.Set {
	states := v.Processes[p]
	if len(states) == 0 {
		return nil
	}
	first := ProcessState{Span: span.New(v.Period.From, states[0].From), Activity: initial(states[0])}
	return span.Where(append([]ProcessState{first}, states...), func(s ProcessState) bool { return slices.Contains(activities, s.Activity) })
}

// UpOrUnmentioned is when a process of the environment was up: one that the history never mentions always was.
func (v *Facts) UpOrUnmentioned(p Process) span.Set {
	if len(v.Processes[p]) == 0 {
		return span.Set{v.Period}
	}
	return v.While(p, Up)
}

// Runs reports whether a process ran, or was paused, at an instant. One of which nothing is known did.
func (v *Facts) Runs(p Process, at time.Time) bool {
	return len(v.Processes[p]) == 0 || v.While(p, Up, Paused).Contains(at)
}

// StartedIn reports whether a process was started in (from, to].
func (v *Facts) StartedIn(p Process, from, to time.Time) bool {
	return slices.ContainsFunc(v.Processes[p], func(s ProcessState) bool {
		return s.Event == history.ProcessStarted && s.From.After(from) && !s.From.After(to)
	})
}

// OfRole has the processes of a role, sorted.
func (v *Facts) OfRole(role string) (out []Process) {
	for p := range v.Processes {
		if p.Role == role {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.KeyID, b.KeyID), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

// every is when something held of each process of a role, and some when it held of one at least.
func (v *Facts) every(role string, held func(Process) span.Set) span.Set {
	out := span.Set{v.Period}
	for _, p := range v.OfRole(role) {
		out = out.Intersect(held(p))
	}
	return out
}

func (v *Facts) some(role string, held func(Process) span.Set) (out span.Set) {
	for _, p := range v.OfRole(role) {
		out = out.Union(held(p))
	}
	return out
}

// Encryptor is the role of the API server whose encryption configuration the history is about. In the history of an aggregated API server this is that server,
// although its reporters write to a kube-apiserver.
func (v *Facts) Encryptor() string {
	if len(v.OfRole(history.RoleAggregatedAPIServer)) > 0 {
		return history.RoleAggregatedAPIServer
	}
	return history.RoleAPIServer
}

// ReporterRuns cuts the judged time where the reporter of a node was started or resumed: its ticks begin anew there. While two of them ran, both write at
// their own rate: that time is left out.
func (v *Facts) ReporterRuns(node string) []span.Span {
	var runs []span.Span
	end := v.Period.To.Add(time.Second)
	cut := func(from time.Time) { runs = span.Append(runs, span.New(from, end)) }
	cut(v.Period.From)
	for _, s := range v.Processes[Reporter(node)] {
		if s.Event == history.ProcessStarted || s.Event == history.ProcessResumed {
			cut(s.From)
		}
	}
	for i := range runs {
		for _, two := range v.Successions[Reporter(node)] {
			if two.From.Equal(runs[i].From) {
				runs[i].From = two.To
			}
		}
		runs[i].To = span.Latest(runs[i].From, runs[i].To)
	}
	return runs
}

// ReporterHandover is when two reporters of a node wrote, each of them what it had asked before its write: the later of two probes may be written first.
// The last write of the one that ended was under way for a write's deadline at most.
func (v *Facts) ReporterHandover(node string) (out span.Set) {
	for _, s := range v.Successions[Reporter(node)] {
		out = append(out, s.Grow(0, v.Run.Timing.WriteTimeout+v.Tolerance()))
	}
	return out
}

// Revised reports whether an event says that the pod of an API server was replaced.
func Revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// Revising is when the pod of a node's API server was replaced: from the end of the old API server until everything in the new pod ran, or until the run
// ended.
func (v *Facts) Revising(node string) span.Set {
	var all []span.Span
	var asked time.Time // to end, by no action, and no pod has come since
	server := Process{Role: v.Encryptor(), Node: node}
	for e := range v.Each(history.KindProcess, history.KindContainer) {
		if p := e.Process; p != nil && p.Role == server.Role && p.Node == node {
			switch {
			case p.State == history.ProcessStopping && !v.Handled(e.At):
				asked = e.At
			case p.State == history.ProcessReady:
				asked = time.Time{}
			}
		}
		if !Revised(e) || e.Container.Node != node {
			continue
		}
		asked = time.Time{}
		if began := v.lastEnd(server, e.At); !began.IsZero() {
			all = append(all, span.New(began, e.At))
		}
	}
	if !asked.IsZero() {
		all = append(all, span.New(asked, v.Period.To))
	}
	return span.Merge(all)
}

// lastEnd is when a process ended for the last time at or before an instant; zero if it never did.
func (v *Facts) lastEnd(p Process, until time.Time) (at time.Time) {
	before := Up
	for _, s := range v.Processes[p] {
		if s.From.After(until) {
			break
		}
		if s.Activity == Down && before != Down {
			at = s.From
		}
		before = s.Activity
	}
	return at
}
