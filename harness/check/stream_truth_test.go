package check

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// showing is an aggregator that hears the reporters of a history on streams. It is written apart from the checker's own rules. change, which may be nil, makes
// what it shows wrong.
type showing struct {
	log      *history.Log
	start    time.Time
	expected []string
	replicas map[string]contract.ReplicaHealth
	shown    *contract.HealthStatus
	change   func(h *contract.HealthStatus, now time.Duration)
}

// streamed is a history whose reporters stream.
func streamed(build func() []history.Event, change func(h *contract.HealthStatus, now time.Duration)) func() []history.Event {
	return func() []history.Event {
		s := &showing{log: history.NewLog(nil), replicas: map[string]contract.ReplicaHealth{}, change: change}
		for _, e := range build() {
			s.event(e)
		}
		return s.log.Events()
	}
}

func (s *showing) event(e history.Event) {
	switch e.Kind {
	case history.KindRun:
		run := *e.Run
		run.Connectivity, s.start = history.ConnectStream, e.At
		e.Run = &run
	case history.KindExpected:
		s.expected = nil
		for _, n := range e.Expected.Nodes {
			s.expected = append(s.expected, n.Name)
		}
	case history.KindProcess:
		if e.Process.Role == history.RoleReporter {
			s.process(*e.Process)
		}
	case history.KindRequest:
		if node := e.Request.Reporter(); node != "" && e.Request.Verb == "patch" {
			request := *e.Request
			request.User, request.ReportOf = contract.AggregatorIdentity, node
			e.Request = &request
			s.report(node, request.Body)
		}
	}
	if e.Kind == history.KindEnd { // which is the last event
		s.log.Append(e)
		return
	}
	s.log.Append(e)
	s.show(e.At)
}

func (s *showing) process(p history.Process) {
	r := contract.ReplicaHealth{NodeName: p.Node, Status: "Unknown", Reason: contract.ReplicaDisconnected}
	switch p.State {
	case history.ProcessReady:
		r.Reason = contract.ReplicaConnected
	case history.ProcessStopped, history.ProcessPaused:
	default:
		return
	}
	s.replicas[p.Node] = r
}

func (s *showing) report(node string, body json.RawMessage) {
	var object struct {
		Status struct{ Conditions []*history.Condition }
	}
	if json.Unmarshal(body, &object) != nil || len(object.Status.Conditions) == 0 {
		return
	}
	r := contract.ReplicaHealth{NodeName: node, Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: 1}
	entries, _ := facts.DecodeMessage(object.Status.Conditions[0].Message)
	for _, e := range entries {
		if e.Status != contract.StatusHealthy {
			r.Status, r.Reason = "False", contract.ReplicaUnhealthy
		}
	}
	s.replicas[node] = r
}

func (s *showing) show(at time.Time) {
	h := &contract.HealthStatus{ObservedGeneration: 1, Conditions: []contract.HealthCondition{{Type: contract.HealthReady, Status: "True"}}}
	for _, node := range slices.Sorted(slices.Values(s.expected)) {
		r, known := s.replicas[node]
		if !known {
			r = contract.ReplicaHealth{NodeName: node, Status: "Unknown", Reason: contract.ReplicaDisconnected}
		}
		h.Replicas = append(h.Replicas, r)
		if r.Status == "True" {
			h.ReadyNodes = append(h.ReadyNodes, node)
		} else {
			h.NotReadyNodes = append(h.NotReadyNodes, node)
			h.Conditions[0].Status = "False"
		}
	}
	if s.change != nil {
		s.change(h, at.Sub(s.start))
	}
	if reflect.DeepEqual(h, s.shown) {
		return
	}
	s.shown = h
	s.log.Record(at, "watch", &history.Object{Resource: contract.HealthResource + "." + contract.HealthGroup, Name: "kubeapiserver", Generation: 1, Health: h})
}

// always shows a node as status from a time on, and lists it so.
func always(node, status string, from, to time.Duration) func(h *contract.HealthStatus, now time.Duration) {
	return func(h *contract.HealthStatus, now time.Duration) {
		if now < from || now >= to {
			return
		}
		for i := range h.Replicas {
			if h.Replicas[i].NodeName == node {
				h.Replicas[i].Status, h.Replicas[i].ObservedGeneration = status, 1
			}
		}
		relist(h)
	}
}

// relist lists the nodes as their replicas say.
func relist(h *contract.HealthStatus) {
	h.ReadyNodes, h.NotReadyNodes, h.Conditions[0].Status = nil, nil, "True"
	for _, r := range h.Replicas {
		if r.Status == "True" {
			h.ReadyNodes = append(h.ReadyNodes, r.NodeName)
			continue
		}
		h.NotReadyNodes, h.Conditions[0].Status = append(h.NotReadyNodes, r.NodeName), "False"
	}
}

// reporterRestarted is a history in which cp-2's reporter is down from 10 s to 20 s.
func reporterRestarted() []history.Event {
	w := newWorld(3, "1")
	w.at(10*sec, func(w *world) { w.stopReporter("cp-2") })
	w.at(20*sec, func(w *world) { w.startReporter("cp-2"); w.rep["cp-2"].next = w.now.Add(sec / 2) })
	w.boot()
	return w.finish(35 * sec)
}

// reporterSilent is one in which it stands still for as long.
func reporterSilent() []history.Event {
	return paused(func(w *world) { w.at(20*sec, func(w *world) { w.pauseReporter("cp-2", false) }) })()
}

// nodeRemoved is one in which cp-3 is removed.
func nodeRemoved() []history.Event {
	w := newWorld(3, "1")
	w.at(10*sec, func(w *world) { w.nodes = []string{"cp-1", "cp-2"}; w.stopReporter("cp-3"); w.expect() })
	w.boot()
	return w.finish(30 * sec)
}

func fineStreams() map[string]func() []history.Event {
	return map[string]func() []history.Event{
		"streams: nothing happens":    streamed(plain(nil), nil),
		"streams: a plugin fails":     streamed(failing(nil), nil),
		"streams: reporter restarted": streamed(reporterRestarted, nil),
		"streams: reporter silent":    streamed(reporterSilent, nil),
		"streams: node removed":       streamed(nodeRemoved, nil),
	}
}

func badStreams() []known {
	truth := "STREAM-TRUTH"
	later := func(change func(h *contract.HealthStatus)) func(h *contract.HealthStatus, now time.Duration) {
		return func(h *contract.HealthStatus, now time.Duration) {
			if now > 15*sec {
				change(h)
			}
		}
	}
	shown := func(name string, build func() []history.Event, change func(h *contract.HealthStatus, now time.Duration)) known {
		return known{name, truth, "", streamed(build, change)}
	}
	never := 60 * sec
	return []known{
		shown("a node in both lists", plain(nil), later(func(h *contract.HealthStatus) { h.NotReadyNodes = h.ReadyNodes[:1]; h.Conditions[0].Status = "False" })),
		shown("a node in no list", plain(nil), later(func(h *contract.HealthStatus) { h.ReadyNodes = h.ReadyNodes[1:] })),
		shown("a stranger in a list", plain(nil), later(func(h *contract.HealthStatus) { h.ReadyNodes = append(h.ReadyNodes, "cp-9") })),
		shown("ready at an older generation", plain(nil), later(func(h *contract.HealthStatus) { h.Replicas[0].ObservedGeneration = 0 })),
		shown("ready although Unknown", reporterRestarted, func(h *contract.HealthStatus, _ time.Duration) {
			h.ReadyNodes, h.NotReadyNodes, h.Conditions[0].Status = append(h.ReadyNodes, h.NotReadyNodes...), nil, "True"
		}),
		shown("Ready without every node", failing(nil), func(h *contract.HealthStatus, _ time.Duration) { h.Conditions[0].Status = "True" }),
		shown("not Ready with every node", plain(nil), later(func(h *contract.HealthStatus) { h.Conditions[0].Status = "False" })),
		shown("a node is left out", plain(nil), later(func(h *contract.HealthStatus) { h.Replicas = h.Replicas[1:]; relist(h) })),
		shown("a removed node stays", nodeRemoved, later(func(h *contract.HealthStatus) {
			h.Replicas = append(h.Replicas, contract.ReplicaHealth{NodeName: "cp-3", Status: "Unknown"})
			relist(h)
		})),
		shown("True while its reporter is down", reporterRestarted, always("cp-2", "True", 9*sec, 18*sec)),
		shown("True while its reporter is silent", reporterSilent, always("cp-2", "True", 9*sec, 18*sec)),
		shown("Unknown although it is heard", plain(nil), always("cp-2", "Unknown", 15*sec, never)),
		shown("True although its plugin fails", failing(nil), always("cp-2", "True", 5*sec, never)),
		shown("connect taken for a report", reporterRestarted, always("cp-2", "True", 20*sec, never)),
		shown("never Unknown in a quick restart", func() []history.Event {
			w := newWorld(3, "1")
			w.at(10*sec, func(w *world) { w.stopReporter("cp-2"); w.startReporter("cp-2") })
			w.boot()
			return w.finish(25 * sec)
		}, always("cp-2", "True", 9*sec, never)),
		{"a reporter that streams reads the CR", "LEAST-PRIVILEGE", "", streamed(extra(byReporter(history.Request{Verb: "get", Resource: "kubeapiservers.operator.openshift.io", Name: "cluster"}, 200)), nil)},
	}
}
