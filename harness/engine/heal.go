package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// healing chooses the actions that undo what the steps of a run did.
type healing struct{ *run }

// heal undoes what the steps did, in an order in which each part can work. Nodes and pods are back before anything on
// them is told anything. What is paused goes on and the network is whole. Then plugins exist to be told to drop their
// faults. Then the rest starts, and plugins that crashed meanwhile.
//
// It reads the state of processes and links from the history and not from the steps: a step may have failed half-way, and a fault may have
// ended a process that no step names. It also runs after a failure, so that the environment can be used again and its
// logs show whether it recovers.
func (r *run) heal(ctx context.Context) error {
	h := healing{r}
	stages := []func() []scenario.Action{
		func() []scenario.Action { return h.resumed(isNode) },
		func() []scenario.Action { return atOnce(h.started(history.RoleNode)) },
		func() []scenario.Action { return h.started(history.RolePod) },
		func() []scenario.Action { return append(h.resumed(isProcess), h.undone()...) },
		func() []scenario.Action {
			return h.started(history.RoleEtcd, history.RoleRemoteKMS, history.RolePlugin)
		},
		h.released,
		func() []scenario.Action {
			return h.started(history.RolePlugin, history.RoleLoadBalancer, history.RoleAPIServer, history.RoleReporter, history.RoleAggregator, history.RoleOperator)
		},
	}
	n := 0
	for _, stage := range stages {
		r.catchUp(idle{})
		for _, a := range stage() {
			n++
			if err := r.drive(ctx, &action{run: r, id: fmt.Sprintf("heal[%d]", n-1), action: a}); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle is a task that never ends and does nothing: it lets catchUp fold all events that wait, so that a stage sees what
// the one before it did.
type idle struct{}

func (idle) advance(time.Time) bool { return false }
func (idle) due() time.Time         { return time.Time{} }

func isNode(role string) bool    { return role == history.RoleNode }
func isProcess(role string) bool { return role != history.RoleNode && role != history.RolePod }

// atOnce starts nodes together. The members of an etcd that lost its quorum are ready only when a majority runs; started
// one after another, the first would wait for the second until its time-out.
func atOnce(starts []scenario.Action) []scenario.Action {
	if len(starts) < 2 {
		return starts
	}
	return []scenario.Action{&scenario.Process{Do: scenario.VerbStart, Target: scenario.Selector{Role: history.RoleNode}}} // all; one that runs is left alone
}

func (r healing) resumed(which func(role string) bool) []scenario.Action {
	var out []scenario.Action
	for _, p := range r.state.Processes() {
		if standsStill(p) && which(p.Role) && r.belongs(p) {
			out = append(out, &scenario.Process{Do: scenario.VerbResume, Target: selector(p)})
		}
	}
	return out
}

// standsStill reports whether a process runs and has to be resumed.
func standsStill(p view.Process) bool {
	return p.State == history.ProcessPaused || p.State == history.ProcessSilenced
}

// undone returns the actions that take back what actions did: links, clocks, requests, watches, credentials, and the
// state of the remote KMS. Each is idempotent, and equal ones are done once.
func (r healing) undone() []scenario.Action {
	var out []scenario.Action
	add := func(a scenario.Action) {
		if !slices.ContainsFunc(out, func(b scenario.Action) bool { return reflect.DeepEqual(a, b) }) {
			out = append(out, a)
		}
	}
	for _, l := range r.state.BrokenLinks() {
		add(&scenario.Link{From: l.From, To: l.To, Node: l.Node, Mode: scenario.LinkRestore})
	}
	for _, a := range r.done {
		if undo := scenario.Undo(a); undo != nil {
			add(undo)
		}
	}
	return out
}

// released takes every fault from every plugin of an API server, if any was injected there.
func (r healing) released() []scenario.Action {
	var out []scenario.Action
	for _, of := range append([]string{""}, r.state.APIServers()...) {
		injected := slices.ContainsFunc(r.done, func(a scenario.Action) bool {
			_, ok := a.(*scenario.Inject)
			return ok && scenario.OfAPIServer(a) == of
		})
		if injected {
			out = append(out, &scenario.Release{Plugin: scenario.Selector{APIServer: of}})
		}
	}
	return out
}

// started returns a start for each process of some roles that does not run although it should: what the history says has
// ended, and after a cold start also what never began.
func (r healing) started(roles ...string) []scenario.Action {
	var out []scenario.Action
	for _, role := range roles {
		for _, p := range r.down() {
			if p.Role == role {
				out = append(out, &scenario.Process{Do: scenario.VerbStart, Target: selector(p)})
			}
		}
	}
	return out
}

func (r healing) down() []view.Process {
	known := r.state.Processes()
	var out []view.Process
	for _, p := range known {
		if p.State != view.Running && !standsStill(p) && r.belongs(p) {
			out = append(out, p)
		}
	}
	if r.scenario.Topology.Start != scenario.StartStopped {
		return out
	}
	for _, p := range r.wanted() {
		if !slices.ContainsFunc(known, func(k view.Process) bool { return identity(k) == identity(p) }) {
			out = append(out, p)
		}
	}
	return out
}

// identity is a process without its state; a lone aggregator may have the number 0 or 1.
func identity(p view.Process) view.Process {
	p.State = ""
	if p.Instance == 0 && p.Role == history.RoleAggregator {
		p.Instance = 1
	}
	return p
}

// wanted are the processes of a control plane that is up.
func (r healing) wanted() []view.Process {
	var out []view.Process
	for _, p := range r.state.Plugins() {
		out = append(out, view.Process{Role: history.RolePlugin, Node: p.Node, KeyID: p.KeyID})
	}
	for _, role := range []string{history.RoleAPIServer, history.RoleReporter} {
		for _, n := range r.state.Nodes() {
			out = append(out, view.Process{Role: role, Node: n})
		}
	}
	for i := 1; i <= r.scenario.Topology.Aggregators; i++ {
		out = append(out, view.Process{Role: history.RoleAggregator, Instance: i})
	}
	return out
}

// belongs reports whether a process should exist: its node was not removed, its plugin not taken away, KMS not disabled.
// To start a reporter of a removed node would be a fault of the harness.
func (r healing) belongs(p view.Process) bool {
	state := r.state.Of(p.APIServer)
	switch p.Role {
	case history.RolePlugin:
		return slices.Contains(state.Plugins(), view.Plugin{Node: p.Node, KeyID: p.KeyID})
	case history.RoleReporter:
		return slices.Contains(state.Nodes(), p.Node)
	case history.RoleAPIServer, history.RoleNode, history.RolePod:
		return slices.Contains(r.env.Nodes(), p.Node)
	default:
		return true
	}
}

func selector(p view.Process) scenario.Selector {
	s := scenario.Selector{Role: p.Role, APIServer: p.APIServer, Node: p.Node, KeyID: p.KeyID}
	if p.Instance > 0 {
		s.Instance = strconv.Itoa(p.Instance)
	}
	return s
}
