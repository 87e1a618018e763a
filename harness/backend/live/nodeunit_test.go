package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// deeds keeps what was done to units, in order.
type deeds struct {
	mu   sync.Mutex
	list []string
}

func (d *deeds) add(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, what)
}

// take gives what was done since it was called last; sorted where the order says nothing.
func (d *deeds) take(sorted bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	if sorted {
		slices.Sort(list)
	}
	return strings.Join(list, ", ")
}

// unit is a process that does as it is told.
type unit struct {
	cluster.Server
	name  string
	phase cluster.Phase
	deeds *deeds
	fails error
}

func (u *unit) do(verb string, phase cluster.Phase) error {
	u.deeds.add(verb + " " + u.name)
	u.phase = phase
	return u.fails
}

func (u *unit) Start(context.Context) error { return u.do("start", cluster.Running) }
func (u *unit) Stop(context.Context) error  { return u.do("stop", cluster.Ended) }
func (u *unit) Kill(context.Context) error  { return u.do("kill", cluster.Ended) }
func (u *unit) Pause(context.Context) error { return u.do("pause", cluster.Paused) }
func (u *unit) Silence(context.Context) error {
	return u.do("silence", cluster.Paused)
}
func (u *unit) Resume(context.Context) error { return u.do("resume", cluster.Running) }
func (u *unit) Status() cluster.Status       { return cluster.Status{Phase: u.phase} }

// nodeOf is a node with two plugins, an API server and a reporter, all running.
func nodeOf(d *deeds) (*cluster.Node, map[string]*unit) {
	units := map[string]*unit{}
	add := func(name string) *unit {
		units[name] = &unit{name: name, phase: cluster.Running, deeds: d}
		return units[name]
	}
	n := &cluster.Node{Name: "cp-1", Server: add("A")}
	for _, k := range []string{"2", "1"} {
		n.AddPlugin(&cluster.Plugin{Target: cluster.Target{Unit: add("P" + k), Identity: history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: k}}, KeyID: k})
	}
	n.SetReporter(&cluster.Target{Unit: add("R"), Identity: history.Process{Role: history.RoleReporter, Node: "cp-1"}})
	return n, units
}

// A node is silent as its API server and its reporter are: plugins have no connections with other machines. A real process cannot be.
func TestSilence(t *testing.T) {
	var d deeds
	n, units := nodeOf(&d)
	var memory cluster.NodeStates
	node := memory.Of(history.RoleNode, []*cluster.Node{n}, nil)
	if err := cluster.Silence(t.Context(), node); err != nil || d.take(true) != "silence A, silence R" {
		t.Errorf("%v, %v", err, units)
	}
	if err := node.Resume(t.Context()); err != nil || d.take(true) != "resume A, resume P1, resume P2, resume R" {
		t.Errorf("%v, %v", err, units)
	}
	if err := cluster.Silence(t.Context(), struct{ cluster.Unit }{units["R"]}); err == nil || err.Error() != cluster.NoSilence {
		t.Errorf("a process that cannot be silent: %v", err)
	}
	s := &scenario.Scenario{Steps: []scenario.Step{{Action: &scenario.Process{Do: scenario.VerbSilence}}}}
	if real, memory := UnsupportedVerbs(s, false), UnsupportedVerbs(s, true); !slices.Equal(real, []string{cluster.NoSilence}) || len(memory) > 0 {
		t.Errorf("real %q, in memory %q", real, memory)
	}
}

func TestWholes(t *testing.T) {
	ctx := context.Background()
	var d deeds
	n, units := nodeOf(&d)
	var memory cluster.NodeStates
	nodeUnit := func(role string) cluster.Unit {
		return memory.Of(role, []*cluster.Node{n}, func(t *cluster.Target) { d.add("ready " + t.Identity.Role + t.Identity.KeyID) })
	}
	want := func(what string, err error, sorted bool, list string) {
		t.Helper()
		if got := d.take(sorted); err != nil || got != list {
			t.Errorf("%s: %s (%v), want %s", what, got, err, list)
		}
	}
	node, pod := nodeUnit(history.RoleNode), nodeUnit(history.RolePod)
	want("start of what runs", node.Start(ctx), false, "")
	want("stop", pod.Stop(ctx), false, "stop A, stop R, stop P2, stop P1")
	want("second stop", pod.Stop(ctx), false, "")
	want("power lost by a node whose pod is down", node.Kill(ctx), false, "")
	want("power back", node.Start(ctx), false, "")
	want("start", pod.Start(ctx), false, "start P1, ready plugin1, start P2, ready plugin2, start A, ready apiserver, start R, ready reporter")

	units["P2"].phase, units["R"].phase = cluster.Ended, cluster.Paused
	want("pause", node.Pause(ctx), true, "pause A, pause P1")
	want("resume", node.Resume(ctx), true, "resume A, resume P1")
	want("second resume", node.Resume(ctx), true, "")
	want("pause again", node.Pause(ctx), true, "pause A, pause P1")
	want("kill", node.Kill(ctx), true, "kill A, kill P1, kill R")
	if !memory.Ended(history.RoleNode, "cp-1") || memory.Ended(history.RolePod, "cp-1") {
		t.Error("it is not remembered that the node has no power")
	}
	want("resume of what was killed", node.Resume(ctx), false, "")
	want("what was down stays down", node.Start(ctx), false, "start P1, ready plugin1, start A, ready apiserver, start R, ready reporter")
	if memory.Ended(history.RoleNode, "cp-1") {
		t.Error("a started node is remembered as one without power")
	}
}

func TestWholeThatDoesNotStart(t *testing.T) {
	ctx := context.Background()
	var d deeds
	n, units := nodeOf(&d)
	var memory cluster.NodeStates
	u := memory.Of(history.RoleNode, []*cluster.Node{n}, func(*cluster.Target) {})
	if err := u.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	units["A"].fails = errors.New("no etcd")
	if err := u.Start(ctx); err == nil || err.Error() != "node cp-1: apiserver-cp-1: no etcd" {
		t.Error(err)
	}
	if !memory.Ended(history.RoleNode, "cp-1") {
		t.Error("a node that did not start is remembered as started")
	}
	units["A"].fails = nil
	if err := u.Start(ctx); err != nil || units["R"].phase != cluster.Running {
		t.Errorf("second start: %v", err)
	}
}

// What is on a node without power cannot be told anything; what is done with its pod does not matter then.
func TestReachable(t *testing.T) {
	e := (&apiServer{unavailable: map[cluster.OnNode]string{}}).withParts()
	nodes := []*cluster.Node{{Name: "cp-1"}, {Name: "cp-2"}}
	e.procs.setUnavailable(cluster.OnNode{Role: history.RolePod, Node: "cp-2"}, unavailableStopped)
	e.procs.setUnavailable(cluster.OnNode{Role: history.RoleNode, Node: "cp-2"}, unavailableKilled)
	if err := e.procs.reachable(nodes, unavailableStopped); err == nil || err.Error() != "node cp-2 has no power: start role node first" {
		t.Error(err)
	}
	e.procs.setUnavailable(cluster.OnNode{Role: history.RoleNode, Node: "cp-2"}, "")
	if err := e.procs.reachable(nodes, ""); err == nil || err.Error() != "node cp-2 is without its API server's pod: start role pod first" {
		t.Error(err)
	}
	if err := errors.Join(e.procs.reachable(nodes, unavailableStopped), e.procs.reachable(nodes[:1], "")); err != nil {
		t.Error(err)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		verb scenario.Verb
		with string
		want bool
	}{
		{scenario.VerbStop, "", true}, {scenario.VerbRestart, "", true}, {scenario.VerbRestart, scenario.WithKill, true},
		{scenario.VerbRestart, scenario.WithContainer, true}, {scenario.VerbKill, "", true}, {scenario.VerbStart, "", false}, {scenario.VerbPause, "", false},
	} {
		a := &scenario.Process{Do: c.verb, With: c.with}
		if ends(a) != c.want {
			t.Errorf("%s with %q: %t", c.verb, c.with, !c.want)
		}
	}
}
