package check

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// process is the identity of a process across restarts.
type process struct {
	role, node, keyID string
	instance          int
}

type procState int

const (
	procDown procState = iota
	procStarting
	procUp
	procPaused
)

type procChange struct {
	at    time.Time
	seq   int64
	event string // the state in the history
	state procState
}

type linkChange struct {
	at             time.Time
	from, to, node string
	ok             bool
	state          string
	delay          time.Duration // while it is slow
}

// disturbance is an instant at which the aggregator may have lost the lead or its connections. It is clean if connections break visibly.
type disturbance struct {
	at    time.Time
	clean bool
}

type processFacts struct {
	facts        *Facts
	procs        map[process][]procChange
	doubled      map[process]spans // while it and its successor ran
	disturbances []disturbance
	succession   history.Succession
}

func (ps *processFacts) read() {
	ps.procs, ps.doubled = map[process][]procChange{}, map[process]spans{}
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		switch e.Kind {
		case history.KindProcess:
			p := e.Process
			k := process{p.Role, p.Node, p.KeyID, p.Instance}
			if ps.facts.excuses.forged[e.Seq] || ps.succeeded(*p, e.At) {
				continue
			}
			ps.procs[k] = append(ps.procs[k], procChange{at: e.At, seq: e.Seq, event: p.State})
			if disturbsAggregator(p.Role) {
				ps.disturbances = append(ps.disturbances, disturbance{e.At, p.State != history.ProcessPaused && p.State != history.ProcessSilenced && p.State != history.ProcessResumed})
			}
		case history.KindLink:
			l := e.Link
			ps.facts.network.links = append(ps.facts.network.links, linkChange{e.At, l.From, l.To, l.Node, l.State == history.LinkOK, l.State, l.Delay})
			if l.From != history.RoleReporter && l.From != "client" {
				ps.disturbances = append(ps.disturbances, disturbance{at: e.At})
			}
		}
	}
	for _, changes := range ps.procs {
		interpret(changes)
	}
}

// succeeded reports whether a change is the end of a process whose successor was started before it, and notes how long they ran side by side.
func (ps *processFacts) succeeded(p history.Process, at time.Time) bool {
	replaced, k := ps.succession.Replaced(p), process{p.Role, p.Node, p.KeyID, p.Instance}
	last := len(ps.doubled[k]) - 1
	switch {
	case replaced && last >= 0:
		ps.doubled[k][last].to = at
	case p.State == history.ProcessStarted && ps.succession.Overlaps(p):
		ps.doubled[k] = append(ps.doubled[k], span{at, ps.facts.complete.to})
	}
	return replaced
}

// disturbsAggregator: a change of these processes may break the aggregator's connections or its leadership.
func disturbsAggregator(role string) bool {
	switch role {
	case history.RoleAggregator, history.RoleAPIServer, history.RoleEtcd, history.RoleLoadBalancer:
		return true
	}
	return false
}

// interpret gives every change the state that holds from then on. A process that is never reported ready is taken as
// up when it is started.
func interpret(changes []procChange) {
	reportsReady := false
	for _, c := range changes {
		reportsReady = reportsReady || c.event == history.ProcessReady
	}
	before := procUp // a paused process was up
	for i := range changes {
		c := &changes[i]
		switch c.event {
		case history.ProcessStarted:
			c.state = procUp
			if reportsReady {
				c.state = procStarting
			}
		case history.ProcessReady:
			c.state = procUp
		case history.ProcessPaused, history.ProcessSilenced:
			c.state = procPaused
			if i > 0 && changes[i-1].state != procPaused {
				before = changes[i-1].state
			}
		case history.ProcessResumed:
			c.state = before
		default: // one that is about to end counts as gone: nothing can be expected of it any more
			c.state = procDown
		}
	}
}

// initial is the state before the first change, as far as that tells it.
func initial(first procChange) procState {
	switch first.event {
	case history.ProcessStarted, history.ProcessReady:
		return procDown
	case history.ProcessResumed:
		return procPaused
	}
	return procUp
}

// in is when the process was in one of states. A process of which nothing is known was in none.
func (ps *processFacts) in(k process, states ...procState) spans {
	changes := ps.procs[k]
	if len(changes) == 0 {
		return nil
	}
	is := func(s procState) bool {
		for _, x := range states {
			if x == s {
				return true
			}
		}
		return false
	}
	var out []span
	at, state := ps.facts.complete.from, initial(changes[0])
	for _, c := range changes {
		if is(state) {
			out = append(out, span{at, c.at})
		}
		at, state = c.at, c.state
	}
	if is(state) {
		out = append(out, span{at, ps.facts.complete.to})
	}
	return merged(out)
}

// upOrUnmentioned is when a process of the environment was up: one that the history never mentions always was.
func (ps *processFacts) upOrUnmentioned(k process) spans {
	if len(ps.procs[k]) == 0 {
		return spans{ps.facts.complete}
	}
	return ps.in(k, procUp)
}

func (ps *processFacts) ofRole(role string) []process {
	var out []process
	for k := range ps.procs {
		if k.role == role {
			out = append(out, k)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.node != b.node {
			return a.node < b.node
		}
		if a.keyID != b.keyID {
			return a.keyID < b.keyID
		}
		return a.instance < b.instance
	})
	return out
}

// fine returns the spans in which no link that match picks was cut, reset, slow or mute.
func (nw *network) fine(match func(linkChange) bool) spans {
	return nw.fineBut(match, func(linkChange) bool { return false })
}

// fineBut is fine, except that it ignores slow links that are tolerable.
func (nw *network) fineBut(match, tolerable func(linkChange) bool) spans {
	type key struct{ from, to, node string }
	since := map[key]time.Time{}
	var bad []span
	for _, l := range nw.links {
		if !match(l) {
			continue
		}
		k := key{l.from, l.to, l.node}
		if from, broken := since[k]; broken {
			bad = append(bad, span{from, latest(l.at, from.Add(1))}) // what was under way is lost, however short it was
			delete(since, k)
		}
		if !l.ok && !(l.state == history.LinkSlow && tolerable(l)) {
			since[k] = l.at
		}
	}
	for _, from := range since {
		bad = append(bad, span{from, nw.facts.complete.to})
	}
	return merged(bad).not(nw.facts.complete)
}

// ContainerChange is what a container engine told, for people: no invariant is judged by it.
type ContainerChange struct {
	history.Container
	At     time.Time     `json:"at"`
	Offset time.Duration `json:"offset"`
}

// containers are the first MaxViolations changes, and how many there were.
func (ps *processFacts) containers() (first []ContainerChange, count int) {
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		if e.Container == nil {
			continue
		}
		if count++; len(first) < MaxViolations {
			first = append(first, ContainerChange{*e.Container, e.At, e.At.Sub(ps.facts.complete.from)})
		}
	}
	return first, count
}

// revised reports whether an event says that the pod of an API server was replaced.
func revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// revising is when the pod of a node's API server was replaced: from the end of the old API server until everything in the new pod ran, or until the run
// ended.
func (ps *processFacts) revising(node string) spans {
	var all []span
	var asked time.Time // to end, by no action, and no pod has come since
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		if p := e.Process; p != nil && p.Role == encryptor(ps.facts) && p.Node == node {
			switch {
			case p.State == history.ProcessStopping && !handled(ps.facts, e.At):
				asked = e.At
			case p.State == history.ProcessReady:
				asked = time.Time{}
			}
		}
		if !revised(e) || e.Container.Node != node {
			continue
		}
		asked = time.Time{}
		var began time.Time
		before := procUp
		for _, c := range ps.procs[process{role: encryptor(ps.facts), node: node}] {
			if c.at.After(e.At) {
				break
			}
			if c.state == procDown && before != procDown {
				began = c.at
			}
			before = c.state
		}
		if !began.IsZero() {
			all = append(all, span{began, e.At})
		}
	}
	if !asked.IsZero() {
		all = append(all, span{asked, ps.facts.complete.to})
	}
	return merged(all)
}
