package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// processes starts, stops, kills, pauses and resumes processes, pods and nodes.
type processes struct {
	e *environment
	w *world
}

// processes carries out start … restart on every selected process at the same time.
func (ps *processes) processes(ctx context.Context, a *scenario.Process) error {
	if a.Target.Role == history.RoleNode || a.Target.Role == history.RolePod {
		return ps.unitsOf(ctx, a)
	}
	if a.Unlisted {
		if err := ps.addUnlisted(a.Target); err != nil {
			return err
		}
	}
	if overlap := a.Overlap.Value(); overlap > 0 {
		return ps.succeed(a.Target, overlap)
	}
	targets, err := ps.selectProcesses(a.Target)
	if err == nil && ps.e.pods != nil {
		targets, err = ps.e.pods.startable(a, targets)
	}
	if err != nil {
		return err
	}
	return each(ps.e, targets, startTimeout, func(p *proc, done func(error)) {
		act(a, p, func() {
			if starts(a) && !p.running() {
				done(fmt.Errorf("%s %s ended while it started", p.id.Role, p.id.Node))
				return
			}
			done(nil)
		})
	})
}

// addUnlisted makes plugins whose sockets no API server and no reporter is given; they do not run yet.
func (ps *processes) addUnlisted(s scenario.Selector) error {
	nodes, err := ps.selectNodes(s.Node, false)
	for _, n := range nodes {
		n.add(s.KeyID)
	}
	return err
}

// succeed starts another reporter beside each that is selected, and ends the older ones after a time.
func (ps *processes) succeed(s scenario.Selector, overlap time.Duration) error {
	nodes, err := ps.selectNodes(s.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return err
	}
	var old, successors []*proc
	for _, n := range nodes {
		old = append(old, &n.reporter.proc)
		n.reporter = newReporter(ps.w, n)
		successors = append(successors, &n.reporter.proc)
	}
	return cmp.Or(each(ps.e, successors, startTimeout, start), ps.w.k.Sleep(overlap), each(ps.e, old, startTimeout, stop))
}

func starts(a *scenario.Process) bool {
	return a.Do == scenario.VerbStart || a.Do == scenario.VerbRestart
}

func act(a *scenario.Process, p *proc, done func()) {
	switch a.Do {
	case scenario.VerbStart:
		p.start(done)
	case scenario.VerbStop:
		p.stop(done)
	case scenario.VerbKill:
		p.end(history.ProcessKilled, "")
		done()
	case scenario.VerbPause:
		p.pause()
		done()
	case scenario.VerbResume:
		p.resume()
		done()
	default:
		if with := a.With; with == scenario.WithKill || with == scenario.WithContainer {
			p.end(history.ProcessKilled, "")
			p.start(done)
			return
		}
		p.stop(func() { p.start(done) })
	}
}

func (ps *processes) selectProcesses(s scenario.Selector) ([]*proc, error) {
	switch s.Role {
	case history.RoleEtcd:
		return []*proc{&ps.w.etcd.proc}, nil
	case history.RoleLoadBalancer:
		return []*proc{&ps.w.balancer.proc}, nil
	case history.RoleRemoteKMS:
		return []*proc{&ps.w.kms.proc}, nil
	case history.RoleOperator:
		return ps.e.pods.operators()
	case history.RoleAggregator:
		return ps.selectAggregators(s.Instance)
	case history.RoleAPIServer, history.RolePlugin, history.RoleReporter:
		return ps.selectOnNodes(s)
	}
	return nil, fmt.Errorf("role %q: expected etcd, apiserver, plugin, reporter, aggregator, remote-kms or load-balancer", s.Role)
}

func (ps *processes) selectOnNodes(s scenario.Selector) ([]*proc, error) {
	nodes, err := ps.selectNodes(s.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return nil, err
	}
	var all []*proc
	for _, n := range nodes {
		for _, p := range n.parts() {
			if p.id.Role == s.Role && (s.KeyID == "" || s.Role != history.RolePlugin || s.KeyID == p.id.KeyID) {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no %s with keyID %q on node %q", s.Role, s.KeyID, s.Node)
	}
	return all, nil
}

// selectNodes finds nodes by a selector's word: a name, or "all" or nothing for all. A removed node whose reporter lingers can be
// found by its name only.
func (ps *processes) selectNodes(word string, lingering bool) ([]*node, error) {
	if word == "" || word == scenario.NodeAll {
		return ps.e.nodes(), nil
	}
	n := ps.w.nodeNamed(word)
	if n == nil || n.removed && !lingering {
		return nil, fmt.Errorf("there is no node %q: there are %v", word, ps.e.Nodes())
	}
	return []*node{n}, nil
}

func (ps *processes) selectAggregators(instance string) ([]*proc, error) {
	leader := ps.leader()
	if leader == 0 && (instance == "leader" || instance == "standby") {
		return nil, errors.New("no aggregator holds the lease")
	}
	var all []*proc
	for _, a := range ps.w.aggregators {
		i := a.id.Instance
		if instance == "" || instance == "leader" && i == leader || instance == "standby" && i != leader || instance == strconv.Itoa(i) {
			all = append(all, &a.proc)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no aggregator %q: there are %d", instance, len(ps.w.aggregators))
	}
	return all, nil
}

// leader is the instance that holds the lease; 0 if none does. One that competes with nobody leads without.
func (ps *processes) leader() int {
	if len(ps.w.aggregators) == 1 || ps.w.hooks.NoElection {
		return 1
	}
	v, err := ps.w.store.Get(leaseKey())
	if err != nil {
		return 0
	}
	holder, _, _ := unstructured.NestedString(v.Body(), "spec", "holderIdentity")
	for _, a := range ps.w.aggregators {
		if a.elector.identity() == holder {
			return a.id.Instance
		}
	}
	return 0
}
