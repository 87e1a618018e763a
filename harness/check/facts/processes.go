package facts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Process is the identity of a process across restarts. Only plugins have a KeyID. Instance numbers the
// replicas of a role that has several; a lone aggregator may have 0 or 1.
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

func Reporter(node string) Process { return Process{Role: history.RoleReporter, Node: node} }

func pluginProcess(p PluginID) Process {
	return Process{Role: history.RolePlugin, Node: p.Node, KeyID: p.KeyID}
}

// Activity is what a process was doing, as far as the harness knows. The harness sees processes from outside: it started
// them, sent a signal, or saw them end.
type Activity int

const (
	// Down also covers the time from a requested end to the end itself. What a process does after SIGTERM is judged by
	// NO-RESURRECTION alone.
	Down Activity = iota
	// Starting ends with the ready event, when the process answered its readiness check.
	Starting
	Up
	// Paused has two causes: SIGSTOP or a paused container, and silence, in which a program runs and reaches no
	// other machine. In both the peers keep their connections and time out. When a process is Down, the kernel
	// resets them.
	Paused
)

type ProcessState struct {
	span.Span
	Seq      int64
	Event    string // the state in the history
	Activity Activity
}

// Processes tells when each process ran.
type Processes struct {
	States      map[Process][]ProcessState
	Successions map[Process]span.Set // while a process and its successor both ran
	period      span.Span
}

// A forged interruption is left out, so that a program cannot shorten the time in which it is judged. NO-FORGED-EXCUSE
// reports it.
func newProcesses(log *Log, interruptions []Interruption) *Processes {
	out := &Processes{map[Process][]ProcessState{}, map[Process]span.Set{}, log.Period}
	var succession history.Succession
	for e := range log.Each(history.KindProcess) {
		forged := slices.ContainsFunc(interruptions, func(x Interruption) bool { return x.Event == e && x.Forged })
		if forged || out.succeeded(&succession, *e.Process, e.At) {
			continue
		}
		k := ProcessOf(e.Process)
		out.States[k] = span.Append(out.States[k], ProcessState{Span: span.New(e.At, log.Period.To), Seq: e.Seq, Event: e.Process.State})
	}
	for _, states := range out.States {
		interpret(states)
	}
	return out
}

// succeeded reports whether a change is the end of a process whose successor was started before it, and notes how long they ran side by side.
func (ps *Processes) succeeded(s *history.Succession, p history.Process, at time.Time) bool {
	replaced, k := s.Replaced(p), ProcessOf(&p)
	last := len(ps.Successions[k]) - 1
	switch {
	case replaced && last >= 0:
		ps.Successions[k][last].To = at
	case p.State == history.ProcessStarted && s.Overlaps(p):
		ps.Successions[k] = append(ps.Successions[k], span.New(at, ps.period.To))
	}
	return replaced
}

// interpret gives every state its activity. A process that is never reported ready is taken as up when it is started.
// A second pause before a resume does not change what is resumed.
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

// initial returns the activity before the first event. A process whose first event is an end must have been
// up before.
func initial(first ProcessState) Activity {
	switch first.Event {
	case history.ProcessStarted, history.ProcessReady:
		return Down
	case history.ProcessResumed:
		return Paused
	}
	return Up
}

// While returns the spans in which the activity of a process was one of some. A process without events has none, so that
// nothing is expected of a program that the run did not have; for parts of the environment use UpOrUnmentioned.
func (ps *Processes) While(p Process, activities ...Activity) span.Set {
	states := ps.States[p]
	if len(states) == 0 {
		return nil
	}
	first := ProcessState{Span: span.New(ps.period.From, states[0].From), Activity: initial(states[0])}
	return span.Where(append([]ProcessState{first}, states...), func(s ProcessState) bool { return slices.Contains(activities, s.Activity) })
}

// UpOrUnmentioned is when a process of the environment was up: one that the history never mentions always was.
func (ps *Processes) UpOrUnmentioned(p Process) span.Set {
	if len(ps.States[p]) == 0 {
		return span.Set{ps.period}
	}
	return ps.While(p, Up)
}

// Runs reports whether a process ran, or was paused, at an instant. One of which nothing is known did.
func (ps *Processes) Runs(p Process, at time.Time) bool {
	return len(ps.States[p]) == 0 || ps.While(p, Up, Paused).Contains(at)
}

// StartedIn reports whether a process was started in (from, to].
func (ps *Processes) StartedIn(p Process, from, to time.Time) bool {
	return slices.ContainsFunc(ps.States[p], func(s ProcessState) bool {
		return s.Event == history.ProcessStarted && s.From.After(from) && !s.From.After(to)
	})
}

// OfRole has the processes of a role, sorted.
func (ps *Processes) OfRole(role string) (out []Process) {
	for p := range ps.States {
		if p.Role == role {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.KeyID, b.KeyID), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

func (ps *Processes) statesOf(role string) (out []ProcessState) {
	for _, p := range ps.OfRole(role) {
		out = append(out, ps.States[p]...)
	}
	return out
}

// every is when something held of each process of a role, and some when it held of one at least.
func (ps *Processes) every(role string, held func(Process) span.Set) span.Set {
	out := span.Set{ps.period}
	for _, p := range ps.OfRole(role) {
		out = out.Intersect(held(p))
	}
	return out
}

func (ps *Processes) some(role string, held func(Process) span.Set) (out span.Set) {
	for _, p := range ps.OfRole(role) {
		out = out.Union(held(p))
	}
	return out
}

// Encryptor is the role of the API server whose encryption configuration the history is about. In the history of an aggregated API server this is that server,
// although its reporters write to a kube-apiserver.
func (ps *Processes) Encryptor() string {
	if len(ps.OfRole(history.RoleAggregatedAPIServer)) > 0 {
		return history.RoleAggregatedAPIServer
	}
	return history.RoleAPIServer
}

// lastEnd returns when a process ended for the last time at or before an instant; zero if it never did. A static pod
// ends its API server before it records the new revision, so the end is looked up backwards from the revision.
func (ps *Processes) lastEnd(p Process, until time.Time) (at time.Time) {
	before := Up
	for _, s := range ps.States[p] {
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

// Revised reports whether an event says that the pod of an API server was replaced.
func Revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// revisions returns, by node, the spans in which the pod of its API server was being replaced: from the end of the old
// API server until everything in the new pod ran, or until the run ended. The kubelet restarts the containers of a
// static pod whose manifest changed. That ends plugins and reporters in the same pod, which NO-EXIT must not call a
// crash.
func revisions(log *Log, actions *Actions, processes *Processes) map[string]span.Set {
	out := map[string]span.Set{}
	asked := map[string]time.Time{} // by node, when its API server was asked to end, by no action, and no pod has come since
	role := processes.Encryptor()
	for e := range log.Each(history.KindProcess, history.KindContainer) {
		switch p := e.Process; {
		case Revised(e):
			node := e.Container.Node
			delete(asked, node)
			if began := processes.lastEnd(Process{Role: role, Node: node}, e.At); !began.IsZero() {
				out[node] = append(out[node], span.New(began, e.At))
			}
		case p == nil || p.Role != role:
		case p.State == history.ProcessStopping && !actions.UnderWay(e.At, Action.Ends):
			asked[p.Node] = e.At
		case p.State == history.ProcessReady:
			delete(asked, p.Node)
		}
	}
	for node, at := range asked {
		out[node] = append(out[node], span.New(at, log.Period.To))
	}
	for node, all := range out {
		out[node] = span.Merge(all)
	}
	return out
}
